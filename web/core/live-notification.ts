import { boolean, decodeOrNull, integer, objectWithAtLeast, string } from '../../client/core/decode.ts';

const decodeTyping = objectWithAtLeast({
  conversation: integer,
  account: objectWithAtLeast({ id: integer, name: string }),
});
const decodePresence = objectWithAtLeast({ account: objectWithAtLeast({ id: integer }), online: boolean });
const decodeAccountChanged = objectWithAtLeast({
  account: objectWithAtLeast({ id: integer, nick: string, name: string }),
});
const decodeRead = objectWithAtLeast({ conversation: integer, seq: integer });

/** A notification of the server that is not a change of a conversation. */
type LiveNotification =
  | { readonly kind: 'typing'; readonly conversation: number; readonly account: { id: number; name: string } }
  | { readonly kind: 'presence'; readonly account: number; readonly online: boolean }
  | { readonly kind: 'account'; readonly account: { id: number; nick: string; name: string } }
  | { readonly kind: 'read'; readonly conversation: number; readonly seq: number };

/** Reads a notification; null: this page does not handle its method, or its parameters have another shape. */
export function readNotification(method: string, params: unknown): LiveNotification | null {
  if (method === 'typing') {
    const typing = decodeOrNull(decodeTyping, params);
    return typing && { kind: 'typing', conversation: typing.conversation, account: typing.account };
  }
  if (method === 'presence') {
    const change = decodeOrNull(decodePresence, params);
    return change && { kind: 'presence', account: change.account.id, online: change.online };
  }
  if (method === 'account.changed') {
    const changed = decodeOrNull(decodeAccountChanged, params);
    return changed && { kind: 'account', account: changed.account };
  }
  const read = method === 'conversation.read' ? decodeOrNull(decodeRead, params) : null;
  return read && { kind: 'read', conversation: read.conversation, seq: read.seq };
}
