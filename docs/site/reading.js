// What reading is easier with: search over the titles and headings of all pages, without a server (every
// word that was typed has to be found, titles come first), and contents that are opened where one is.

const side = document.querySelector(".side");
const here = side?.querySelector("[aria-current]");
// The contents alone are moved: scrollIntoView would move the page as well, where its place is far down.
if (here)
  side.scrollTop =
    here.getBoundingClientRect().top - side.getBoundingClientRect().top - side.clientHeight / 2;

const box = document.querySelector(".search");
const input = box.querySelector("input");
const list = box.querySelector("ol");
const up = document.body.dataset.up;

box.hidden = false;
input.addEventListener("input", () => show(input.value));
document.addEventListener("keydown", (event) => {
  const isTyping = event.target instanceof HTMLInputElement;
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    input.focus();
  }
  if (event.key === "Escape") hide();
});
document.addEventListener("click", (event) => {
  if (!box.contains(event.target)) hide();
});

function hide() {
  list.hidden = true;
}

function show(asked) {
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
  list.hidden = words.length === 0;
  if (list.hidden) return;
  const found = window.PAGES.filter(({ title, text }) =>
    words.every((word) => `${title} ${text}`.toLowerCase().includes(word)),
  );
  found.sort((one, other) => (one.text === "" ? 0 : 1) - (other.text === "" ? 0 : 1));
  list.replaceChildren(...found.slice(0, 20).map(entry));
  if (found.length === 0) list.append(Object.assign(document.createElement("li"), nothing()));
}

function nothing() {
  return { className: "none", textContent: "Nothing found." };
}

function entry({ url, title, text }) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = up + url;
  link.textContent = title;
  if (text !== "")
    link.append(Object.assign(document.createElement("small"), { textContent: text }));
  item.append(link);
  return item;
}
