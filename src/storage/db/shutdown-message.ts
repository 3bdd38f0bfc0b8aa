/**
 * Longer chunks of data from PostgreSQL are not examined, because they contain rows: its last message is short, and so
 * are messages that arrive together with it.
 */
const MAX_BYTES = 1_024;
const MAX_MESSAGES = 8;
const ERROR_RESPONSE = 0x45;
const HEADER_BYTES = 5;
/**
 * The fields of PostgreSQL's last message before a shutdown: severity, SQLSTATE, and the function in the source. The
 * function distinguishes PostgreSQL's own shutdown from a pooler's, which has the same SQLSTATE.
 */
const FIELDS = ['VFATAL', 'C57P01', 'RProcessInterrupts'];

/**
 * True if the data from PostgreSQL end with "terminating connection due to administrator command". The postgres library
 * passes this message to no statement, since the session ends before the statement does.
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
