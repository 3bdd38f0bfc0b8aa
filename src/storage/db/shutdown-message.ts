/** Longer answers hold rows; PostgreSQL's last words are short, and what comes before them in one piece as well. */
const MAX_BYTES = 1_024;
const MAX_MESSAGES = 8;
const ERROR_RESPONSE = 0x45;
const HEADER_BYTES = 5;
/** The place in the source tells PostgreSQL's own shutdown from that of a pooler before it, which uses the same code. */
const FIELDS = ['VFATAL', 'C57P01', 'RProcessInterrupts'];

/**
 * True where what PostgreSQL sends ends with "terminating connection due to administrator command". The library tells no
 * statement of it, since the session ends before it is done with the statement.
 */
export function endsWithShutdown(chunk: Buffer): boolean {
  if (chunk.length > MAX_BYTES) return false;
  let start = 0;
  for (let n = 0; n < MAX_MESSAGES && start + HEADER_BYTES <= chunk.length; n += 1) {
    const end = start + 1 + chunk.readUInt32BE(start + 1);
    if (chunk[start] === ERROR_RESPONSE && end === chunk.length) {
      const fields = chunk.toString('latin1', start + HEADER_BYTES, end).split('\0');
      return FIELDS.every((field) => fields.includes(field));
    }
    start = end;
  }
  return false;
}
