import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { basename } from 'node:path';
import { readlinkSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { describePortHolder, findPortHolder } from '../src/port-holder.ts';

async function listening(host: string, run: (port: number) => Promise<void>): Promise<void> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  try {
    await run((server.address() as AddressInfo).port);
  } finally {
    server.close();
    await once(server, 'close');
  }
}

const own = { pid: process.pid, program: basename(readlinkSync('/proc/self/exe')), uid: process.geteuid!() };

describe('the holder of a port', () => {
  test('is found by address and port', async () => {
    await listening('127.0.0.1', async (port) => {
      expect(await findPortHolder('127.0.0.1', port)).toEqual(own);
      expect(await findPortHolder('0.0.0.0', port)).toEqual(own);
      expect(await findPortHolder('127.0.0.2', port)).toBeNull();
    });
  });

  test('is found where it has all addresses', async () => {
    await listening('0.0.0.0', async (port) => expect(await findPortHolder('127.0.0.1', port)).toEqual(own));
    await listening('::', async (port) => expect(await findPortHolder('127.0.0.1', port)).toEqual(own));
  });

  test('is nobody once the port is free', async () => {
    let free = 0;
    await listening('127.0.0.1', async (port) => {
      free = port;
    });
    expect(await findPortHolder('127.0.0.1', free)).toBeNull();
  });

  test('is named as far as it is known', () => {
    expect(describePortHolder(own)).toBe(`: ${own.program} (pid ${own.pid})`);
    expect(describePortHolder({ pid: null, program: null, uid: 33 })).toBe(': a program of the user with uid 33');
    expect(describePortHolder(null)).toBe('');
  });
});
