import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { silentLog } from '../../../src/log.ts';
import { Database } from '../../../src/storage/database.ts';
import { LocalDatabaseError } from '../../../src/storage/provision/local-error.ts';
import {
  provisionDatabase,
  type DatabaseRequest,
  type ProvisionedDatabase,
} from '../../../src/storage/provision/provision.ts';
import { migrate } from '../../../src/storage/db/migrate.ts';
import { newestSchemaVersion } from '../../../src/storage/db/migration-files.ts';
import { IncompatibleSchemaError } from '../../../src/storage/db/schema-compatibility.ts';
import { readPasswd } from '../../../src/data-dir/passwd.ts';
import { createOrCheckCanary, Sealer } from '../../../src/storage/db/sealed.ts';
import { postgresqlConfig } from '../../support/config.ts';
import { eventually } from '../../support/eventually.ts';
import { LocalPostgres, localPrograms, serverOwner } from '../../support/local-postgres.ts';

const isRoot = process.geteuid?.() === 0;
const HBA = [`local all ${serverOwner().name} peer`, 'local all all peer', 'host all all 127.0.0.1/32 scram-sha-256'];
const SECRET = 'QpE7mVt3xkLr9sWzYb2nHd8fJc4gUa6o';

let next = 0;

/** A request for a database with names that no other test uses. */
function request(changes: Partial<DatabaseRequest> = {}): DatabaseRequest {
  next += 1;
  const nothing = { password: null, secret: null, serverUid: null, host: null };
  return { database: `d${next}`, user: `u${next}`, ...nothing, ...changes };
}

const programs = await localPrograms();

// If only root could run the programs, this test cannot start any.
const describeHere = programs.length === 0 ? describe.skip : describe;

describeHere.each(programs.map((each) => [each.major, each] as const))(
  'a database in a local PostgreSQL %i',
  (_, which) => {
    let server: LocalPostgres;

    beforeAll(async () => {
      server = await LocalPostgres.start(which);
    });
    afterAll(async () => server.stop());

    const make = (wanted: DatabaseRequest): Promise<ProvisionedDatabase> => provisionDatabase(server.cluster, wanted);

    async function refusal(wanted: DatabaseRequest): Promise<string> {
      const error: unknown = await make(wanted).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LocalDatabaseError);
      return (error as LocalDatabaseError).message;
    }

    test('is made for a role without further rights, and nobody else is let in', async () => {
      const wanted = request();
      const made = await make(wanted);
      expect(made).toMatchObject({ host: '127.0.0.1', port: server.cluster.port, role: 'made', database: 'made' });
      expect(made.password).toMatch(/^[\w-]{32}$/);
      const facts = await server.administer(async (sql) => {
        const [row] = await sql`
        select rolcanlogin, rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls as more,
          rolpassword like 'SCRAM-SHA-256$4096:%' as scram, pg_encoding_to_char(encoding) as encoding, datcollate,
          has_database_privilege('public', datname, 'connect') as open
        from pg_authid join pg_database on datdba = pg_authid.oid where rolname = ${wanted.user}`;
        return row;
      });
      expect(facts).toEqual({
        rolcanlogin: true,
        more: false,
        scram: true,
        encoding: 'UTF8',
        datcollate: 'C',
        open: false,
      });
      // The database sorts by code point, and its `lower` covers every alphabet.
      const letters = await server.login(wanted.user, made.password, wanted.database, async (sql) => {
        const [row] = await sql`select lower('ÄŁΩ') as lower, 'Z' < 'a' as "byCodePoint"`;
        return row;
      });
      expect(letters).toEqual({ lower: 'äłω', byCodePoint: true });
    });

    test('can be migrated by its role', async () => {
      const wanted = request();
      const { host, port, password } = await make(wanted);
      const place = { host, port, password, database: wanted.database, user: wanted.user };
      const database = new Database(
        { ...place, connectTimeoutMs: 2_000, lockTimeoutMs: 1_000 },
        postgresqlConfig,
        silentLog(),
      );
      await migrate(database.intake);
      await database.stop();
    });

    test('leaves no password in the log of a server that logs every statement, and nothing that its role wrote', async () => {
      const wanted = request();
      const { password } = await make(wanted);
      const failing = server.login(wanted.user, password, wanted.database, (sql) => sql`select 'a message'::int`);
      await expect(failing).rejects.toThrow('a message');
      await server.login(wanted.user, password, wanted.database, (sql) => sql`select ${'what somebody wrote'}::text`);
      const log = await server.log();
      expect(log).toContain('select $1::text');
      expect(log).not.toContain('what somebody wrote');
      expect(log).toContain(`create role "${wanted.user}"`);
      expect(log).not.toContain(password);
      expect(log).not.toContain('invalid input syntax');
    });

    test('is taken as it is by another run that knows the password', async () => {
      const wanted = request();
      const { password } = await make(wanted);
      const stored = (): Promise<unknown> =>
        server.administer((sql) => sql`select rolpassword from pg_authid where rolname = ${wanted.user}`);
      const before = await stored();
      expect(await make({ ...wanted, password })).toMatchObject({ role: 'kept', database: 'kept', password });
      expect(await stored()).toEqual(before);
    });

    test('is completed by another run, wherever the first one was cut off', async () => {
      const onlyRole = request();
      await server.administer((sql) => sql.unsafe(`create role ${onlyRole.user} login password 'lost'`));
      expect(await make(onlyRole)).toMatchObject({ role: 'new password', database: 'made' });
      const all = request();
      await make(all);
      await server.administer((sql) => sql.unsafe(`grant connect on database ${all.database} to public`));
      const again = await make(all);
      expect(again).toMatchObject({ role: 'new password', database: 'kept' });
      const [row] = await server.administer(
        (sql) => sql`select has_database_privilege('public', ${all.database}, 'connect') as open`,
      );
      expect(row).toEqual({ open: false });
    });

    test('gives a role the password that the configuration has', async () => {
      const wanted = request({ password: 'from "server.conf" \\ é' });
      expect(await make(wanted)).toMatchObject({ role: 'made', password: wanted.password });
      await server.administer((sql) => sql.unsafe(`alter role ${wanted.user} password 'another'`));
      expect(await make(wanted)).toMatchObject({ role: 'new password', password: wanted.password });
    });

    test('knows a password that PostgreSQL itself has stored, in both of its ways', async () => {
      for (const way of ['scram-sha-256', 'md5']) {
        const wanted = request({ password: 'pencil' });
        await server.administer(async (sql) => {
          await sql.unsafe(`set password_encryption = '${way}'`);
          await sql.unsafe(`create role ${wanted.user} login password 'pencil'`);
        });
        if (way === 'scram-sha-256') expect(await make(wanted)).toMatchObject({ role: 'kept', database: 'made' });
        // The authentication rule demands the newer method and refuses this login; the role itself was not changed.
        else expect(await refusal(wanted)).toContain('does not let the role in');
      }
    });

    test('takes names with every character', async () => {
      const wanted = request({ database: `a.b "c" 'd' -- ${next} é`, user: `e.f"g"$1; ${next}` });
      expect(await make(wanted)).toMatchObject({ role: 'made', database: 'made' });
      expect(await make(wanted)).toMatchObject({ role: 'new password', database: 'kept' });
    });

    describe('refuses, and changes nothing,', () => {
      test('names that PostgreSQL does not take, in its words', async () => {
        expect(await refusal(request({ user: 'pg_klatch' }))).toMatch(/refused: role name "pg_klatch" is reserved/);
        expect(await refusal(request({ database: 'é'.repeat(32) }))).toContain('has more than 63 bytes');
      });

      test.each([
        ['superuser', 'has more rights than Klatch should (superuser)'],
        ['createdb createrole', '(createdb, createrole)'],
        ['nologin', 'may not log in'],
      ])('a role with %s', async (rights, said) => {
        const wanted = request();
        await server.administer((sql) =>
          sql.unsafe(`create role ${wanted.user} login ${rights}`.replace('login nologin', 'nologin')),
        );
        expect(await refusal(wanted)).toContain(said);
      });

      test('a role that others use and whose password is not known', async () => {
        const owning = request();
        await make(owning);
        await server.administer((sql) => sql.unsafe(`create database other_${owning.user} owner ${owning.user}`));
        expect(await refusal(owning)).toMatch(/owns other databases \(other_\w+\).*--db-password-file/);
        const busy = request();
        const { password } = await make(busy);
        await server.login(busy.user, password, busy.database, async (sql) => {
          await sql`select 1`;
          expect(await refusal(busy)).toContain('is logged in once right now');
        });
      });

      test('a database of another owner, or in another encoding', async () => {
        const theirs = request();
        await server.administer((sql) => sql.unsafe(`create database ${theirs.database}`));
        expect(await refusal(theirs)).toContain(`belongs to the role "${serverOwner().name}"`);
        const encoded = request();
        await server.administer(async (sql) => {
          await sql.unsafe(`create role ${encoded.user} login`);
          await sql.unsafe(
            `create database ${encoded.database} owner ${encoded.user} template template0 encoding 'LATIN1' lc_collate 'C' lc_ctype 'C'`,
          );
        });
        expect(await refusal(encoded)).toContain('in the encoding LATIN1');
        const [role] = await server.administer(
          (sql) => sql`select rolpassword from pg_authid where rolname = ${encoded.user}`,
        );
        expect(role).toEqual({ rolpassword: null });
      });

      test("a database that holds something else, or a Klatch's data under another secret, or a newer one's", async () => {
        const foreign = request();
        const first = await make(foreign);
        await server.login(foreign.user, first.password, foreign.database, (sql) => sql`create view v as select 1`);
        expect(await refusal(foreign)).toContain("holds tables that are not Klatch's");
        const old = request();
        const { password, host, port } = await make(old);
        const target = { host, port, password, database: old.database, user: old.user };
        const database = new Database(
          { ...target, connectTimeoutMs: 2_000, lockTimeoutMs: 1_000 },
          postgresqlConfig,
          silentLog(),
        );
        await migrate(database.intake);
        await database.general.run((sql) => createOrCheckCanary(sql, new Sealer(SECRET)));
        await database.stop();
        // PostgreSQL ends the sessions a moment later; until then the role is refused for another reason.
        await eventually(
          () => server.administer((sql) => sql`select from pg_stat_activity where usename = ${old.user}`),
          (sessions) => sessions.length === 0,
        );
        expect(await refusal(old)).toContain('whose secret is not in this configuration');
        expect(await refusal({ ...old, secret: SECRET.replace('QpE7', 'Xx01') })).toContain('Put the old `secret`');
        expect(await make({ ...old, password, secret: SECRET })).toMatchObject({ role: 'kept', database: 'kept' });
        await server.login(old.user, password, old.database, async (sql) => {
          await sql`insert into schema_version (version, name) values (${newestSchemaVersion() + 1}, 'newer')`;
        });
        await expect(make({ ...old, password, secret: SECRET })).rejects.toBeInstanceOf(IncompatibleSchemaError);
      });
    });

    test('says which line pg_hba.conf lacks; with that line it works', async () => {
      await server.setRules([HBA[0]!]);
      const wanted = request();
      const said = await refusal(wanted);
      expect(said).toContain(server.cluster.hbaFile);
      const line = /^ {2}(host .*)$/m.exec(said)?.[1];
      expect(line).toBe(`host  "${wanted.database}"  "${wanted.user}"  127.0.0.1/32  scram-sha-256`);
      await server.setRules([line!, HBA[0]!]);
      expect(await make(wanted)).toMatchObject({ database: 'kept' });
      await server.setRules(HBA);
    });
  },
);

describeHere('a local PostgreSQL without TCP', () => {
  let server: LocalPostgres;

  beforeAll(async () => {
    server = await LocalPostgres.start(programs[0]!, { listen_addresses: '' });
  });
  afterAll(async () => server.stop());

  (isRoot ? test : test.skip)('is reached over its socket, as the user that the server will run as', async () => {
    const { name, uid } = readPasswd().find((user) => user.name === 'daemon')!;
    const made = await provisionDatabase(server.cluster, request({ user: name, serverUid: uid }));
    expect(made).toMatchObject({ host: server.cluster.socketDir, port: server.cluster.port });
    expect(process.geteuid?.()).toBe(0);
    const again = { user: name, database: `d${next}`, serverUid: uid, password: '', host: server.cluster.socketDir };
    expect(await provisionDatabase(server.cluster, request(again))).toMatchObject({ role: 'kept', password: '' });
  });

  test('that lets only users of the same name in gets a line for a password', async () => {
    const wanted = request();
    const error = (await provisionDatabase(server.cluster, wanted).catch((reason: unknown) => reason)) as Error;
    const line = /^ {2}(local .*)$/m.exec(error.message)?.[1];
    expect(line).toBe(`local  "${wanted.database}"  "${wanted.user}"  scram-sha-256`);
    await server.setRules([line!, ...HBA]);
    expect(await provisionDatabase(server.cluster, wanted)).toMatchObject({ host: server.cluster.socketDir });
  });

  test('which has stopped is said to do so, with the command that starts it', async () => {
    const gone = { ...server.cluster, name: '15/main', socketDir: `${server.folder}/nowhere` };
    await expect(provisionDatabase(gone, request())).rejects.toThrow(
      /15\/main .*does not run.*sudo pg_ctlcluster 15 main start/,
    );
  });
});
