import { DELIVERED_LINK_MS, signFileLink } from '../files/link.ts';
import type { LinkFile } from './payload.ts';

/** Makes the addresses of files that reverse webhooks are told: good for some days, as long as the message is there. */
export function linksForHooks(key: Buffer, baseUri: string): LinkFile {
  return (conversationId, { id, name }) => {
    const expiresAt = new Date(Date.now() + DELIVERED_LINK_MS);
    return signFileLink(key, baseUri, {
      file: { id, name },
      reader: { kind: 'conversation', id: conversationId },
      expiresAt,
    });
  };
}
