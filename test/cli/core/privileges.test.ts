import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { dropPrivileges, refuseRootWithServiceConfig } from '../../../src/cli/core/privileges.ts';

const SERVICE = '/etc/klatch/server.conf';

describe('root', () => {
  test('may not run the server by hand with the configuration of the service, and is told how to start that', () => {
    expect(() => refuseRootWithServiceConfig(SERVICE, 0)).toThrow(
      expect.objectContaining({ exitCode: 77, message: expect.stringContaining('sudo service klatch start') }),
    );
    expect(() => refuseRootWithServiceConfig('/etc/../etc/klatch/server.conf', 0)).toThrow(/does not run as root/);
    expect(() => refuseRootWithServiceConfig(SERVICE, 1_000)).not.toThrow();
    expect(() => refuseRootWithServiceConfig('/opt/klatch/conf/server.conf', 0)).not.toThrow();
  });

  test('becomes the owner of the data directory before it makes anything in there', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'klatch-root-'));
    try {
      const isRoot = process.geteuid?.() === 0;
      const [uid, gid] = isRoot ? [4_321, 4_322] : [process.geteuid!(), process.getegid!()];
      if (isRoot) await chown(folder, uid, gid);
      const calls: unknown[] = [];
      const identity = {
        geteuid: () => 0,
        setgroups: (groups: number[]) => calls.push(['groups', groups]),
        setgid: (id: number) => calls.push(['gid', id]),
        setuid: (id: number) => calls.push(['uid', id]),
      };
      dropPrivileges(folder, identity);
      // The user id changes last: a process that is not root any more may not change its groups.
      expect(calls).toEqual([
        ['groups', [gid]],
        ['gid', gid],
        ['uid', uid],
      ]);
      dropPrivileges(folder, { ...identity, geteuid: () => 1_000 });
      dropPrivileges(join(folder, 'missing'), identity);
      expect(calls).toHaveLength(3);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
