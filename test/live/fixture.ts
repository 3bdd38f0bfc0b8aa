import { createPerson, type TestPerson } from '../support/people.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';
import type { ConfigChanges } from '../support/config.ts';
import type { TestDatabase } from '../support/database.ts';
import { LiveClient, type ClientOptions } from './client.ts';

const ENDPOINTS = [
  { type: 'websocket', interface: '127.0.0.1', port: 0, tls: null },
  { type: 'tcp', interface: '127.0.0.1', port: 0, tls: null },
] as const;

/** A server with both kinds of endpoints, a group with alice, and the clients that a test opens. */
export class LiveFixture {
  readonly server: TestServer;
  readonly alice: TestPerson;
  readonly group: TestGroup;
  readonly #clients: LiveClient[] = [];

  private constructor(server: TestServer, alice: TestPerson, group: TestGroup) {
    this.server = server;
    this.alice = alice;
    this.group = group;
  }

  static async start(changes: ConfigChanges = {}, options: { database?: TestDatabase } = {}): Promise<LiveFixture> {
    const server = await TestServer.start({ endpoints: [...ENDPOINTS], ...changes }, options);
    const alice = await createPerson(server, 'alice');
    const group = await server.createGroup();
    const fixture = new LiveFixture(server, alice, group);
    await fixture.add('alice');
    return fixture;
  }

  /** The URLs of `/v1/live`, of the ws endpoint, and of the tcp endpoint. */
  get urls(): readonly [http: string, websocket: string, tcp: string] {
    const [websocket, tcp] = this.server.endpoints;
    return [this.server.liveUrl, websocket!.url, tcp!.url];
  }

  async connect(url: string, options: ClientOptions = {}): Promise<LiveClient> {
    const client = await LiveClient.connect(url, options);
    this.#clients.push(client);
    return client;
  }

  async signIn(url: string, token = this.alice.token): Promise<LiveClient> {
    const client = await this.connect(url);
    await client.call('live.authenticate', { token });
    return client;
  }

  /** Connects a client, signs it in and subscribes it. */
  async follow(url: string, token = this.alice.token, params: object = {}): Promise<LiveClient> {
    const client = await this.signIn(url, token);
    await client.call('live.subscribe', params);
    return client;
  }

  async add(nick: string, group = this.group.id): Promise<void> {
    await this.server.operate('groups.add-member', { group, user: nick });
  }

  async remove(nick: string): Promise<void> {
    await this.server.operate('groups.remove-member', { group: this.group.id, user: nick });
  }

  /** Posts through the group's webhook; throws when the server refuses it. */
  async post(text: string, group = this.group): Promise<void> {
    const { status, body } = await postJson(group.webhook, { text });
    if (status !== 200) throw new Error(`not posted: ${status} ${JSON.stringify(body)}`);
  }

  /** The value of a series of the metrics, by its name with labels. The test has to switch metrics on. */
  async metric(series: string): Promise<number> {
    const text = await (await fetch(this.server.metricsUrl)).text();
    const line = text.split('\n').find((each) => each.startsWith(`${series} `));
    if (line === undefined) throw new Error(`there is no ${series}`);
    return Number(line.slice(series.length));
  }

  /** The sum of all series of a metric, with any labels. */
  async total(family: string): Promise<number> {
    const text = await (await fetch(this.server.metricsUrl)).text();
    const values = [...text.matchAll(new RegExp(`^${family}(?:\\{.*\\})? (\\S+)$`, 'gm'))].map(([, value]) =>
      Number(value),
    );
    if (values.length === 0) throw new Error(`there is no ${family}`);
    return values.reduce((sum, value) => sum + value, 0);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
    await this.server.stop();
  }
}
