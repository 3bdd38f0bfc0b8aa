/** The baseline of the intake benchmark: Express parses the same body and sends the same answer. It stores nothing. */
import express from 'express';
import type { AddressInfo } from 'node:net';

const app = express();
app.post('/v1/webhooks/:token', express.json({ limit: '1mb' }), (req, res) => {
  const { text } = req.body as { text: string };
  res.json({ status: 'Ok', ok: true, success: true, id: `1:${text.length}` });
});
const server = app.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.on('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
});
