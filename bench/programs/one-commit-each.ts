/**
 * The second baseline of the intake benchmark: writes the same rows as Klatch, with a transaction for each request.
 * Arguments: socket folder, port.
 */
import express from 'express';
import type { AddressInfo } from 'node:net';
import postgres from 'postgres';

const [socketDir, port] = process.argv.slice(2);
const sql = postgres({
  host: socketDir!,
  port: Number(port),
  database: 'klatch',
  user: 'klatch',
  max: 10,
  onnotice: () => {},
});
const [account] = await sql`select id from account limit 1`;
const app = express();
app.post('/v1/webhooks/:token', express.json({ limit: '1mb' }), async (req, res) => {
  const { text } = req.body as { text: string };
  const seq = await sql.begin(async (tx) => {
    const [group] = await tx`select conversation_id as id from integration
      where token_hash = encode(sha256(${req.params['token']}::bytea), 'hex')`;
    const [head] = await tx`update conversation_head set last_seq = last_seq + 1, last_rev = last_rev + 1
      where conversation_id = ${group!['id']} returning last_seq as seq, last_rev as rev`;
    await tx`insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
      values (${group!['id']}, ${head!['seq']}, ${head!['rev']}, ${account!['id']}, ${text}, now())`;
    return head!['seq'] as string;
  });
  res.json({ status: 'Ok', ok: true, success: true, id: seq });
});
const server = app.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.on('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
  void sql.end({ timeout: 1 });
});
