// Which addresses a request may go to. Pure: an address in text, as a resolver or a parsed URL gives
// it, is judged by where its network leads. What cannot be read is refused.

/** What an address is, where it is not simply a host of the public internet. */
export type AddressKind = "public" | "private" | "forbidden";

export type Judgement = { readonly kind: AddressKind; readonly what: string };

const PUBLIC: Judgement = { kind: "public", what: "public" };

type Range = readonly [prefix: string, kind: AddressKind, what: string];

// `private` networks are reached where a target allows them. `forbidden` ones never: no worker lives at
// a cloud's metadata service, at "this host" (which connects to loopback), or at a group address.
const IPV4_RANGES: readonly Range[] = [
  ["169.254.169.254/32", "forbidden", "cloud metadata"],
  ["169.254.170.2/32", "forbidden", "cloud metadata"],
  ["169.254.170.23/32", "forbidden", "cloud metadata"],
  ["100.100.100.200/32", "forbidden", "cloud metadata"],
  ["168.63.129.16/32", "forbidden", "cloud metadata"],
  ["192.0.0.192/32", "forbidden", "cloud metadata"],
  ["0.0.0.0/8", "forbidden", "unspecified"],
  ["10.0.0.0/8", "private", "private"],
  ["100.64.0.0/10", "private", "carrier-grade NAT"],
  ["127.0.0.0/8", "private", "loopback"],
  ["169.254.0.0/16", "private", "link-local"],
  ["172.16.0.0/12", "private", "private"],
  ["192.168.0.0/16", "private", "private"],
  ["198.18.0.0/15", "private", "benchmarking"],
  ["192.0.0.0/24", "forbidden", "reserved"],
  ["192.0.2.0/24", "forbidden", "documentation"],
  ["192.88.99.0/24", "forbidden", "reserved"],
  ["198.51.100.0/24", "forbidden", "documentation"],
  ["203.0.113.0/24", "forbidden", "documentation"],
  ["224.0.0.0/4", "forbidden", "multicast"],
  ["240.0.0.0/4", "forbidden", "reserved"],
];

const IPV6_RANGES: readonly Range[] = [
  ["fd00:ec2::254/128", "forbidden", "cloud metadata"],
  ["fd00:ec2::23/128", "forbidden", "cloud metadata"],
  ["fd20:ce::254/128", "forbidden", "cloud metadata"],
  ["fd00:c1::a9fe:a9fe/128", "forbidden", "cloud metadata"],
  ["::/128", "forbidden", "unspecified"],
  ["::1/128", "private", "loopback"],
  ["fc00::/7", "private", "unique local"],
  ["fe80::/10", "private", "link-local"],
  ["2001::/23", "forbidden", "reserved"],
  ["2001:db8::/32", "forbidden", "documentation"],
  ["2002::/16", "forbidden", "6to4"],
  ["3fff::/20", "forbidden", "documentation"],
  ["2000::/3", "public", "public"],
  ["ff00::/8", "forbidden", "multicast"],
];

/** Networks whose last 32 bits are an IPv4 address that the traffic goes to. */
const EMBEDDING = ["::ffff:0:0/96", "64:ff9b::/96"] as const;

/** Judges one address; `%zone` of a link-local one is looked past. */
export function judgeAddress(text: string): Judgement {
  const address = bytesOf(text.split("%", 1)[0] ?? "");
  if (!address) return { kind: "forbidden", what: "not an address" };
  if (address.length === 4) return judge(address, V4) ?? PUBLIC;
  const isEmbedding = V6_EMBEDDING.some((range) => isWithin(address, range));
  if (isEmbedding) return judge(address.slice(12), V4) ?? PUBLIC;
  // Everything outside of what is given out to hosts, compatible addresses and others, is refused.
  return judge(address, V6) ?? { kind: "forbidden", what: "reserved" };
}

type ReadRange = {
  readonly network: readonly number[];
  readonly bits: number;
  readonly judgement: Judgement;
};

const readRange = ([prefix, kind, what]: Range): ReadRange => {
  const [network = "", bits] = prefix.split("/");
  return { network: bytesOf(network) ?? [], bits: Number(bits), judgement: { kind, what } };
};
const V4 = IPV4_RANGES.map(readRange);
const V6 = IPV6_RANGES.map(readRange);
const V6_EMBEDDING = EMBEDDING.map((prefix) => readRange([prefix, "public", ""]));

/** The first range decides: the narrow ones come first. */
function judge(address: readonly number[], ranges: readonly ReadRange[]): Judgement | undefined {
  return ranges.find((range) => isWithin(address, range))?.judgement;
}

function isWithin(address: readonly number[], { network, bits }: ReadRange): boolean {
  return address.every((byte, at) => {
    const shown = Math.min(8, Math.max(0, bits - at * 8));
    const mask = (0xff << (8 - shown)) & 0xff;
    return (byte & mask) === ((network[at] ?? 0) & mask);
  });
}

/** 4 or 16 bytes, or null. Strict: dotted decimal alone, as `URL` has turned every other form into it. */
function bytesOf(text: string): readonly number[] | null {
  if (text.length > 45) return null;
  return text.includes(":") ? ipv6Bytes(text) : ipv4Bytes(text);
}

function ipv4Bytes(text: string): readonly number[] | null {
  const parts = text.split(".");
  const isRight = parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part));
  const bytes = parts.map(Number);
  return isRight && bytes.every((byte) => byte <= 255) ? bytes : null;
}

function ipv6Bytes(text: string): readonly number[] | null {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [head, tail] = [groupBytes(halves[0] ?? ""), groupBytes(halves[1] ?? "")];
  if (!head || !tail) return null;
  const missing = 16 - head.length - tail.length;
  if (halves.length === 1) return missing === 0 ? head : null;
  return missing >= 2 ? [...head, ...new Array<number>(missing).fill(0), ...tail] : null;
}

function groupBytes(text: string): readonly number[] | null {
  const bytes: number[] = [];
  if (text === "") return bytes;
  const groups = text.split(":");
  for (const [at, group] of groups.entries()) {
    const isLast = at === groups.length - 1;
    const embedded = isLast && group.includes(".") ? ipv4Bytes(group) : null;
    if (embedded) bytes.push(...embedded);
    else if (/^[0-9a-f]{1,4}$/i.test(group)) {
      const value = Number.parseInt(group, 16);
      bytes.push(value >> 8, value & 0xff);
    } else return null;
  }
  return bytes.length <= 16 ? bytes : null;
}
