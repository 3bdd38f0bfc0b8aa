/** Makes the frame that notifies a live client of a message, for servers that imitate Klatch. */
export function changeFrame(group: number, seq: number, text: string): string {
  const message = {
    id: `${group}:${seq}`,
    seq,
    rev: seq,
    sender: { id: 1, name: 'Webhook', nick: null, kind: 'webhook' },
    text,
    sent_at: new Date().toISOString(),
    mentions: [],
  };
  const params = { conversation: group, rev: seq, message };
  return JSON.stringify({ jsonrpc: '2.0', method: 'conversation.change', params });
}
