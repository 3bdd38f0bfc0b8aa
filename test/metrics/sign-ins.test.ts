import { expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { TestMailServer } from '../support/mail-server.ts';
import { TestServer } from '../support/server.ts';

test('signing in and trying to are counted', async () => {
  const mail = await TestMailServer.start();
  const server = await TestServer.start({
    registration: 'open',
    smtp: mail.config(),
    metrics: { metricsEnabled: true },
    limits: { codesPerSourcePerHour: 2 },
  });
  try {
    const start = (address: string) => callAs(server, null, 'auth.start', { address });
    const { transaction } = await start('alice@example.org');
    const code = await mail.codeTo('alice@example.org');
    await expect(start('alice@example.org')).rejects.toMatchObject({ code: 'rate_limited' });
    await start('bob@example.org');
    await mail.codeTo('bob@example.org');
    await expect(start('carol@example.org')).rejects.toMatchObject({ code: 'rate_limited' });
    const wrong = code === '000000' ? '000001' : '000000';
    await expect(callAs(server, null, 'auth.verify', { transaction, code: wrong })).rejects.toThrow();
    await callAs(server, null, 'auth.verify', { transaction, code });
    await callAs(server, null, 'auth.sign-up', { transaction, nick: 'alice' });
    const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'alice' });
    await callAs(server, null, 'auth.verify', { link });
    await expect(callAs(server, { token: `kls_${'A'.repeat(43)}` }, 'profile.show')).rejects.toThrow();
    const text = await (await fetch(server.metricsUrl)).text();
    const value = (line: string): number => Number(text.split(`\n${line} `)[1]?.split('\n')[0]);
    expect(value('klatch_activations_started_total')).toBe(2);
    expect(value('klatch_activation_rejections_total{reason="resend"}')).toBe(1);
    expect(value('klatch_activation_rejections_total{reason="source"}')).toBe(1);
    expect(value('klatch_codes_total{outcome="sent"}')).toBe(2);
    expect(value('klatch_code_failures_total')).toBe(1);
    expect(value('klatch_sign_ins_total{way="sign_up"}')).toBe(1);
    expect(value('klatch_sign_ins_total{way="link"}')).toBe(1);
    expect(value('klatch_unknown_session_tokens_total')).toBe(1);
  } finally {
    await server.stop();
    await mail.stop();
  }
});
