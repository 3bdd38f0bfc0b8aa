import { afterEach, describe, expect, test } from '@jest/globals';
import { Fixture } from './fixture.ts';
import { OK } from './receiver.ts';

const fixture = new Fixture();
afterEach(() => fixture.close());

function always(...addresses: string[]) {
  return () => Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })));
}

describe('DeliveryClient and addresses', () => {
  test.each([
    '127.0.0.1',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[::1]',
    '2130706433',
    '0x7f.1',
    '017700000001',
    '127.1',
    '0.0.0.0',
    '[::]',
    '10.0.0.1',
    '169.254.169.254',
    '[64:ff9b::7f00:1]',
    '[2002:a00:1::]',
  ])('does not connect to the literal %s', async (host) => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    const attempt = await fixture.client({ allow: [] }).post(receiver.url(host), {}, '{}');
    expect(attempt).toMatchObject({ delivered: false, category: 'address policy', code: null });
    expect(attempt.detail).toMatch(/ address$/);
    expect(receiver.connections).toBe(0);
  });

  test.each([
    ['localhost', '127.0.0.1'],
    ['127.0.0.1.nip.io', '127.0.0.1'],
    ['metadata.internal', '169.254.169.254'],
    ['v6.example', '::1'],
    ['mapped.example', '::ffff:127.0.0.1'],
    ['compatible.example', '::7f00:1'],
    ['zone.example', 'fe80::1%lo'],
    ['sixtofour.example', '2002:a00:1::'],
    ['nat64.example', '64:ff9b::7f00:1'],
    ['strange.example', '127.1'],
  ])('does not connect to the name %s at %s', async (host, address) => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    const attempt = await fixture.client({ allow: [], resolve: always(address) }).post(receiver.url(host), {}, '{}');
    expect(attempt).toMatchObject({ delivered: false, category: 'address policy', code: null });
    expect(receiver.connections).toBe(0);
  });

  test.each(['127.0.0.1', '[::ffff:127.0.0.1]', '2130706433', '0x7f.1', 'hooks.test', 'hooks.test.'])(
    'connects to %s where the address is allowed',
    async (host) => {
      const receiver = await fixture.receiver((socket) => socket.write(OK));
      const attempt = await fixture.client().post(receiver.url(host), {}, '{}');
      expect(attempt).toMatchObject({ delivered: true, category: null, code: 200, detail: null });
    },
  );

  test('connects where the host name is allowed', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    const client = fixture.client({ allow: ['*.corp.example'] });
    expect(await client.post(receiver.url('hooks.corp.example'), {}, '{}')).toMatchObject({ delivered: true });
    expect(await client.post(receiver.url('corp.example'), {}, '{}')).toMatchObject({ category: 'address policy' });
  });

  test('asks again at each connection: a name that moves to a private address is refused', async () => {
    const receiver = await fixture.receiver((socket) =>
      socket.end('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'),
    );
    const answers = ['127.0.0.1', '10.0.0.1', '127.0.0.1'];
    const client = fixture.client({ resolve: () => always(answers.shift() ?? '')() });
    const url = receiver.url('rebinding.example');
    expect(await client.post(url, {}, '1')).toMatchObject({ delivered: true });
    expect(await client.post(url, {}, '2')).toMatchObject({ category: 'address policy', detail: 'private address' });
    expect(await client.post(url, {}, '3')).toMatchObject({ delivered: true });
    expect(receiver.requests.map(({ body }) => body)).toEqual(['1', '3']);
  });

  test('of several addresses only the allowed ones are tried, until one accepts', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    // The first three addresses do not work: 10.0.0.1 and ::1 are not on the list, and nothing listens on 127.0.0.2.
    const client = fixture.client({
      allow: ['127.0.0.0/8'],
      resolve: always('10.0.0.1', '127.0.0.2', '::1', '127.0.0.1'),
    });
    expect(await client.post(receiver.url('many.example'), {}, '{}')).toMatchObject({ delivered: true });
    expect(receiver.connections).toBe(1);
  });

  test('reports "refused" with the address for the log when no allowed address accepts', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    const client = fixture.client({ resolve: always('127.0.0.2', '127.0.0.3') });
    expect(await client.post(receiver.url('closed.example'), {}, '{}')).toMatchObject({
      delivered: false,
      category: 'refused',
      code: null,
      detail: 'ECONNREFUSED 127.0.0.2',
    });
  });

  test('reports "dns" for a name that does not exist and for one that is not answered in time', async () => {
    const missing = fixture.client({
      resolve: () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' })),
    });
    expect(await missing.post('http://missing.example/secret', {}, '{}')).toMatchObject({
      delivered: false,
      category: 'dns',
      detail: 'look-up: ENOTFOUND',
    });
    const silent = fixture.client({ resolve: () => new Promise(() => {}) });
    expect(await silent.post('http://silent.example/secret', {}, '{}')).toMatchObject({
      category: 'dns',
      detail: 'look-up: ETIMEDOUT',
    });
  });
});
