import { createCipheriv } from 'node:crypto';
import { callAs } from '../../../support/call.ts';
import { newSubscription } from '../../../support/devices.ts';
import { uploaded } from '../../../http/files-fixture.ts';
import type { TestServer } from '../../../support/server.ts';

const DAY_S = 24 * 60 * 60;

/**
 * Creates the content of a person's settings and list of files. `blocked` is the nick of an account that the person
 * blocks.
 */
export async function writeSampleAccount(
  server: TestServer,
  person: { readonly token: string },
  blocked: string,
): Promise<void> {
  await callAs(server, person, 'profile.update', { about: 'On call every third week. Fridays off.' });
  await callAs(server, person, 'blocks.add', { user: blocked });
  for (const label of ['Backup report', 'weechat on the desktop'])
    await callAs(server, person, 'sessions.create', { label, expires_in_s: 90 * DAY_S });
  for (const label of ['Firefox on Linux', 'Pixel 9'])
    await callAs(server, person, 'devices.register', { kind: 'web', subscription: newSubscription(), label });
  await callAs(server, person, 'bots.create', { nick: 'on-call-bot', name: 'On call' });
  await callAs(server, person, 'bots.create', { nick: 'stand-up-bot', name: 'Stand-up' });
  for (const label of ['rota script', 'laptop'])
    await callAs(server, person, 'tokens.create', {
      bot: 'on-call-bot',
      label,
      scopes: ['messages:write', 'groups:read'],
    });
  for (const name of ['rota-2026.ods', 'a-photo-of-the-new-server-room-with-a-rather-long-name.jpg'])
    await uploaded(server, person, bytesOf(name), name);
}

/** Bytes that no compression makes smaller. The same name gives the same bytes. */
function bytesOf(name: string): Buffer {
  return createCipheriv('aes-128-ctr', Buffer.alloc(16, name), Buffer.alloc(16)).update(Buffer.alloc(90_000));
}
