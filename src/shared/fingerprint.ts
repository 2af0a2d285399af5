// What equal errors have in common: their words, without the numbers, ids and times that differ from one
// to the next. Pure.

const UUID = /\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b/gi;
const TIME = /\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?/g;
const HEX = /\b(0x[\da-f]+|(?=[\da-f]*\d)(?=[\da-f]*[a-f])[\da-f]{8,})\b/gi;
const NUMBER = /\d+(\.\d+)?/g;

/** The message with placeholders: "run <id> took <n> ms". */
export function errorPattern(message: string): string {
  return message
    .replace(UUID, "<id>")
    .replace(TIME, "<time>")
    .replace(HEX, "<hex>")
    .replace(NUMBER, "<n>");
}
