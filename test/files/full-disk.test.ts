import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { lacksMount } from '../../faults/disk-fault.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';
import { download, tokenOf, upload } from './over-http.ts';

const run = promisify(execFile);
const MIB = 1024 * 1024;

const obstacle = await lacksMount();
const onSmallDisk = obstacle === null ? test : test.skip;

let disk: string;
let server: TestServer;
let group: TestGroup;
let token: string;

beforeAll(async () => {
  if (obstacle !== null) return;
  disk = await mkdtemp(join(tmpdir(), 'klatch-small-'));
  await run('mount', ['-t', 'tmpfs', '-o', 'size=4m,mode=0700', 'tmpfs', disk]);
  server = await TestServer.start({ files: { localFilesFolder: join(disk, 'files') } });
  group = await server.createGroup();
  token = await tokenOf(server, 'anna');
});

afterAll(async () => {
  if (obstacle !== null) return;
  await server.stop();
  await run('umount', [disk]);
  await rm(disk, { recursive: true });
});

const why = obstacle === null ? '' : ` (not tried: ${obstacle})`;

onSmallDisk(
  `a full disk stops uploads with a word, leaves nothing of them, and messages still flow${why}`,
  async () => {
    const kept = randomBytes(2 * MIB);
    const first = await upload(server, { token, bytes: kept });
    expect(first.status).toBe(201);
    const second = await upload(server, { token, bytes: randomBytes(3 * MIB) });
    expect([second.status, second.body.code]).toEqual([507, 'storage_full']);
    const posted = await postJson(group.webhook, { text: 'still here' });
    expect([posted.status, posted.body]).toEqual([200, expect.anything()]);
    const again = await download(server, { token, id: first.body.id as string });
    expect(Buffer.isBuffer(again) && again.equals(kept)).toBe(true);
    // The failed upload takes no space any more.
    expect((await upload(server, { token, bytes: randomBytes(MIB) })).status).toBe(201);
    expect((await server.operate<{ found: unknown[] }>('files.check', {})).found).toEqual([]);
  },
);
