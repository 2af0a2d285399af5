# A worker in plain Python: claims runs of "word-count" over HTTP, renews them while it works, and ends them.
import json, os, threading, time, urllib.error, urllib.request, uuid

URL, SECRET = os.environ["HOLDFAST_URL"], os.environ["HOLDFAST_WORKER_SECRET"]
INSTANCE = f"python-{uuid.uuid4()}"

def post(path, body):  # Every call of a worker may be repeated: an answer may be lost on the way.
    headers = {"authorization": f"Bearer {SECRET}", "content-type": "application/json"}
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
    for pause in (1, 2, 4, 8, 0):
        try:
            return json.load(urllib.request.urlopen(request, timeout=60))
        except OSError as error:
            if isinstance(error, urllib.error.HTTPError) or not pause: raise
            time.sleep(pause)

def execute(run):
    grant, path, done = {"instance": INSTANCE, "fence": run["fence"]}, f"/api/runs/{run['id']}", threading.Event()
    def beat():
        while not done.wait(run["leaseMs"] / 3000): post(path + "/heartbeat", grant)
    threading.Thread(target=beat, daemon=True).start()
    try:
        ending = "/complete", {**grant, "result": {"words": len(run["input"]["text"].split()), "by": "python"}}
    except Exception as error:
        ending = "/fail", {**grant, "error": {"message": repr(error)}}
    done.set()
    try: post(path + ending[0], ending[1])
    except urllib.error.HTTPError as refused: print("not ours any more" if refused.code == 409 else refused)

while True:
    claim = {"instance": INSTANCE, "claimId": str(uuid.uuid4()), "jobs": ["word-count"], "limit": 1, "waitMs": 20000}
    for run in post("/api/worker/claim", claim)["runs"]: execute(run)
