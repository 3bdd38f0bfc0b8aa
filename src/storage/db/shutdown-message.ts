/**
 * Longer chunks of data from PostgreSQL are not examined, because they contain rows: its last message is short, and so
 * are messages that arrive together with it.
 */
const MAX_CHUNK_BYTES = 1_024;
const MAX_EXAMINED_MESSAGES = 8;
const ERROR_RESPONSE = 0x45;
const HEADER_BYTES = 5;
/**
 * The fields of PostgreSQL's last message before a shutdown: severity, SQLSTATE, and the function in the source. The
 * function distinguishes PostgreSQL's own shutdown from a pooler's, which has the same SQLSTATE.
 */
const SHUTDOWN_FIELDS = ['VFATAL', 'C57P01', 'RProcessInterrupts'];

/**
 * True if the data from PostgreSQL end with "terminating connection due to administrator command". The postgres library
 * passes this message to no statement, since the session ends before the statement does.
 */
export function endsWithShutdown(chunk: Buffer): boolean {
  if (chunk.length > MAX_CHUNK_BYTES) return false;
  let messageStart = 0;
  for (let n = 0; n < MAX_EXAMINED_MESSAGES && messageStart + HEADER_BYTES <= chunk.length; n += 1) {
    const end = messageStart + 1 + chunk.readUInt32BE(messageStart + 1);
    if (chunk[messageStart] === ERROR_RESPONSE && end === chunk.length) {
      const fields = chunk.toString('latin1', messageStart + HEADER_BYTES, end).split('\0');
      return SHUTDOWN_FIELDS.every((field) => fields.includes(field));
    }
    messageStart = end;
  }
  return false;
}
