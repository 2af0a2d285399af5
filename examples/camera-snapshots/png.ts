// Pictures as PNG files: eight bits for each of red, green and blue, no interlacing, nothing else.

import { crc32, deflateSync } from "node:zlib";

export type Size = { readonly width: number; readonly height: number };
export type Colour = readonly [red: number, green: number, blue: number];

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

export function png(
  { width, height }: Size,
  colourAt: (point: { readonly x: number; readonly y: number }) => Colour,
): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const rows = Array.from({ length: height }, (_, y) =>
    // Each row begins with the number of its filter; 0 is none.
    Buffer.from([0, ...Array.from({ length: width }, (_, x) => colourAt({ x, y })).flat()]),
  );
  return Buffer.concat([
    SIGNATURE,
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(Buffer.concat(rows))),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, checksum]);
}
