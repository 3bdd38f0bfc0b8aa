import { eventually } from '../../../support/eventually.ts';
import { signIn } from '../../../support/people.ts';
import { postJson, type TestServer } from '../../../support/server.ts';
import { call, upload } from '../../../files/over-http.ts';
import { writeSampleAccount } from './sample-account.ts';
import type { WebBrowser } from '../web-browser.ts';

/** The nick of the account whose screens are shown. */
export const VIEWER = 'nadia';
/** The nick of an account that is in no conversation. */
export const NEWCOMER = 'tomas';

const PEOPLE = {
  nadia: 'Nadia Petrova',
  omar: 'Omar Haddad',
  lena: 'Lena Fischer',
  kenji: 'Kenji Watanabe',
  priya: 'Priya Raman',
  tomas: 'Tomás Rivera',
  prizes: 'Free Prizes',
} as const;
type Nick = keyof typeof PEOPLE;

/** The ids of conversations, named by their content. */
export interface SampleContent {
  /**
   * The viewer owns this group. It shows text, code, quotes, links, mentions, cards, a picture, a file, an edit, a
   * deletion, and notices.
   */
  readonly operations: number;
  /** The viewer is a member of this group, which shows cards of programs. */
  readonly deployments: number;
  /** The group in which the viewer has three unread messages. */
  readonly relaunch: number;
  readonly empty: number;
  readonly archived: number;
  readonly private: number;
  /** The link of an invitation to a group that the viewer is not in. */
  readonly invitation: string;
  /** The session token of the account with which the viewer has a private conversation. */
  readonly peerToken: string;
}

/** A hook whose target refuses each connection: port 9 has no service. */
async function addFailingHook(server: TestServer, group: number): Promise<void> {
  const url = 'http://127.0.0.1:9/pager?key=example';
  await server.operate('hooks.create', { group, url, description: 'The pager of the people on call' });
}

/** The name of a conversation in the sample content. */
export type SampleConversation = Exclude<keyof SampleContent, 'invitation' | 'peerToken'>;

/** Fills a new server with messages of people and programs that look like those of a team. */
export async function writeSampleContent(server: TestServer, browser: WebBrowser): Promise<SampleContent> {
  const people = new Map<string, SamplePerson>();
  for (const [nick, name] of Object.entries(PEOPLE)) {
    const { id } = await server.operate<{ id: number }>('accounts.create', { nick, name });
    people.set(nick, { id, token: (await signIn(server, id)).token });
  }
  const writer = new SampleWriter(server, people);
  const club = { isPublic: true, about: 'A novel a month, on the last Thursday.' };
  const books = await writer.join('Book club', ['omar', 'lena'], club);
  const archived = await writer.join('Spring offsite', ['nadia', 'omar', 'lena']);
  const empty = await writer.join('Winter offsite', ['nadia', 'lena']);
  const relaunch = await writer.join('Website relaunch', ['nadia', 'lena', 'kenji', 'priya']);
  const deployments = await writer.join('Deployments', ['kenji', 'nadia', 'omar']);
  const operations = await writer.join('Operations', ['nadia', 'omar', 'lena', 'kenji', 'priya'], {
    isPublic: true,
    about: 'Who is on call, what broke, and what we do about it.\nRunbooks: https://wiki.example/runbooks',
  });
  await writer.say(archived.id, 'omar', 20_000, 'Thank you all, that was a good week.');
  await server.operate('groups.archive', { group: archived.id });
  const privateId = await writeOfPeople(writer, relaunch.id);
  await writeDeployments(writer, deployments);
  await addFailingHook(server, operations.id);
  await writeOperations(writer, operations, await drawChart(browser));
  await writer.invite('nadia', operations.id, { max_uses: 1 });
  const invitation = await writer.invite('omar', books.id);
  await writeSampleAccount(server, people.get(VIEWER)!, 'prizes');
  await writer.nameSessions();
  await writer.setTimes();
  await writer.waitUntilFound('latency');
  return {
    operations: operations.id,
    deployments: deployments.id,
    relaunch: relaunch.id,
    empty: empty.id,
    archived: archived.id,
    private: privateId,
    invitation,
    peerToken: people.get('omar')!.token,
  };
}

interface SamplePerson {
  readonly id: number;
  readonly token: string;
}

interface Group {
  readonly id: number;
  readonly webhook: string;
}

/** Writes messages as the people. It records an age in minutes for each message, which `setTimes` applies. */
class SampleWriter {
  readonly #server: TestServer;
  readonly #people: ReadonlyMap<string, SamplePerson>;
  readonly #ages: { conversation: number; seq: number; minutes: number }[] = [];

  constructor(server: TestServer, people: ReadonlyMap<string, SamplePerson>) {
    this.#server = server;
    this.#people = people;
  }

  /** Creates a group, whose owner is the first of the given members. */
  async join(
    title: string,
    [owner, ...others]: readonly [Nick, ...Nick[]],
    { isPublic = false, about = null as string | null } = {},
  ): Promise<Group> {
    const { id, webhook } = await this.#server.createGroup(title);
    for (const user of [owner, ...others]) await this.#server.operate('groups.add-member', { group: id, user });
    await this.#server.operate('groups.transfer', { group: id, user: owner });
    await this.#as(owner, 'groups.update', { group: id, title, about, public: isPublic });
    return { id, webhook };
  }

  async say(conversation: number, nick: Nick, minutes: number, text: string, files: string[] = []): Promise<number> {
    const input = { conversation, text, files, client_id: `sample-${this.#ages.length}` };
    const request = { operation: 'messages.send', input, token: this.#people.get(nick)!.token };
    // A server on a busy machine may answer 503: the outcome is unknown. The repeated send has the same client id, so
    // the server does not post the message twice.
    const { status, body } = await eventually(
      () => call(this.#server, request),
      (answer) => answer.status !== 503,
    );
    if (status !== 200) throw new Error(`a message was refused: ${JSON.stringify(body)}`);
    const { seq } = body as { seq: number };
    this.#ages.push({ conversation, seq, minutes });
    return seq;
  }

  async post({ id, webhook }: Group, minutes: number, body: object): Promise<void> {
    const { status, body: answer } = await postJson(webhook, body);
    if (status !== 200) throw new Error(`a post was refused: ${JSON.stringify(answer)}`);
    this.#ages.push({ conversation: id, seq: Number((answer as { id: string }).id.split(':')[1]), minutes });
  }

  async upload(nick: Nick, name: string, bytes: Buffer): Promise<string> {
    const { body } = await upload(this.#server, { token: this.#people.get(nick)!.token, bytes, name });
    return (body as { id: string }).id;
  }

  async openPrivateConversation(nick: Nick, other: Nick): Promise<number> {
    return (await this.#as<{ id: number }>(nick, 'private.open', { user: other })).id;
  }

  async edit(nick: Nick, conversation: number, seq: number, text: string): Promise<void> {
    await this.#as(nick, 'messages.edit', { conversation, seq, text });
  }

  async delete(nick: Nick, conversation: number, seq: number): Promise<void> {
    await this.#as(nick, 'messages.delete', { conversation, seq });
  }

  async read(nick: Nick, conversation: number, seq: number): Promise<void> {
    await this.#as(nick, 'messages.mark-read', { conversation, seq });
  }

  /** Creates an invitation to the group. Resolves with its link. */
  async invite(nick: Nick, group: number, limits: { max_uses?: number } = {}): Promise<string> {
    const input = { group, valid_s: 7 * 24 * 60 * 60, ...limits };
    return (await this.#as<{ link: string }>(nick, 'invites.create', input)).link;
  }

  /** Gives the sessions a label such as a program gives them. */
  async nameSessions(): Promise<void> {
    await this.#server.database.query((sql) => sql`update session set label = 'Pixel 9' where label = 'test'`);
  }

  /** Waits until a search finds the text. */
  async waitUntilFound(text: string): Promise<void> {
    await eventually(
      () => this.#as<{ messages: unknown[] }>('nadia', 'messages.search', { text, limit: 1 }),
      ({ messages }) => messages.length > 0,
    );
  }

  /** Sets the times in the database, since the server gives each message the time of its commit. */
  async setTimes(): Promise<void> {
    await this.#server.database.query(async (sql) => {
      for (const { conversation, seq, minutes } of this.#ages)
        await sql`update message set sent_at = now() - make_interval(mins => ${minutes})
          where conversation_id = ${conversation} and seq = ${seq}`;
      await sql`update conversation_head h set last_at = coalesce(
        (select max(sent_at) from message m where m.conversation_id = h.conversation_id),
        now() - interval '3 days')`;
      await sql`update notice n set at = coalesce(
        (select sent_at from message m where m.conversation_id = n.conversation_id and m.seq = n.after_seq),
        now() - interval '3 days')`;
    });
  }

  async #as<Answer>(nick: Nick, operation: string, input: object): Promise<Answer> {
    const { status, body } = await call(this.#server, { operation, input, token: this.#people.get(nick)!.token });
    if (status !== 200) throw new Error(`${operation} was refused: ${JSON.stringify(body)}`);
    return body as Answer;
  }
}

/** Writes a group with unread messages and a private conversation; resolves with the id of the latter. */
async function writeOfPeople(writer: SampleWriter, relaunch: number): Promise<number> {
  await writer.say(relaunch, 'lena', 2_000, 'The new start page is on the staging server. What do you think?');
  await writer.say(relaunch, 'nadia', 1_990, 'Much calmer. The headline could be a line shorter.');
  await writer.say(relaunch, 'kenji', 1_980, 'Agreed, and the first paint went from 1.9 s to 0.7 s.');
  await writer.read('nadia', relaunch, 3);
  await writer.say(relaunch, 'lena', 55, 'I shortened the headline.');
  await writer.say(relaunch, 'priya', 52, '@nadia could you read the page about prices before noon?');
  await writer.say(relaunch, 'lena', 50, 'Then we publish at two.');
  const conversation = await writer.openPrivateConversation('omar', 'nadia');
  await writer.say(conversation, 'nadia', 190, 'Can you take my shift on Friday?');
  await writer.say(conversation, 'omar', 120, 'Sure, if you take mine on the 12th.');
  return conversation;
}

async function writeDeployments(writer: SampleWriter, group: Group): Promise<void> {
  const builds = [
    { minutes: 300, color: 'good', title: 'shop-api #412 passed', branch: 'main', took: '3 min 12 s' },
    { minutes: 170, color: 'warning', title: 'shop-web #873 is unstable', branch: 'checkout', took: '7 min 40 s' },
    { minutes: 95, color: 'danger', title: 'shop-web #874 failed', branch: 'checkout', took: '2 min 05 s' },
  ];
  for (const { minutes, color, title, branch, took } of builds) {
    const fields = [
      { title: 'Branch', value: branch, short: true },
      { title: 'Duration', value: took, short: true },
    ];
    const link = `https://ci.example/${title.split(' ')[0]}`;
    await writer.post(group, minutes, {
      username: 'Build server',
      attachments: [{ color, title, title_link: link, fields, footer: 'ci.example' }],
    });
  }
}

async function writeOperations(writer: SampleWriter, group: Group, chart: Buffer): Promise<void> {
  const { id } = group;
  await writer.say(
    id,
    'lena',
    1_480,
    'I am on call until Monday. The runbook is at https://wiki.example/runbooks/shop',
  );
  const fence =
    '```\n$ df -h /srv\nFilesystem      Size  Used Avail Use% Mounted on\n/dev/nvme0n1p2  1.8T  1.6T  112G  94% /srv\n```';
  await writer.say(id, 'omar', 74, `The backup disk is nearly full:\n${fence}`);
  await writer.say(id, 'omar', 73, 'I remove the snapshots of *June*, after a check with `restic snapshots`.');
  await writer.post(group, 64, {
    username: 'Alertmanager',
    attachments: [
      {
        color: 'danger',
        title: 'Latency of the shop is over 800 ms',
        title_link: 'https://metrics.example/d/shop',
        text: 'p99 over five minutes, in **eu-central**.',
        fields: [
          { title: 'Service', value: 'shop-api', short: true },
          { title: 'Severity', value: 'critical', short: true },
        ],
      },
    ],
  });
  const picture = await writer.upload('kenji', 'latency-p99.png', chart);
  await writer.say(id, 'kenji', 61, 'Since the deployment of 9:20, it seems:', [picture]);
  const removed = await writer.say(id, 'priya', 60, 'Wrong window, sorry.');
  await writer.delete('priya', id, removed);
  const asked = await writer.say(id, 'priya', 58, '> Since the deployment of 9:20\n@nadia do we roll back?');
  await writer.say(id, 'nadia', 57, 'Yes. Kenji, please go ahead: **back to 411**, and keep the logs.');
  const report = await writer.upload('kenji', 'incident-2026-11.pdf', Buffer.alloc(184_320, 'report '));
  await writer.say(id, 'kenji', 40, 'Done, latency is back at 120 ms. The draft of the report:', [report]);
  const edited = await writer.say(id, 'nadia', 38, 'Thank you.');
  await writer.edit('nadia', id, edited, 'Thank you! I read it this afternoon.');
  await writer.read('nadia', id, Math.max(asked, edited));
}

/** A picture as people send it: a chart, drawn by the browser. */
async function drawChart(browser: WebBrowser): Promise<Buffer> {
  const [width, height] = [720, 300];
  const values = [22, 24, 21, 23, 25, 24, 22, 96, 178, 214, 206, 222, 198, 210, 88, 26, 23, 24];
  const step = width / (values.length - 1);
  const points = values.map((value, index) => `${index * step},${height - 30 - value}`).join(' ');
  const lines = [70, 140, 210].map((y) => `<path d="M0 ${y}H${width}" stroke="#d5dae3"/>`).join('');
  const profile = await browser.newProfile({ viewport: { width, height } });
  try {
    const page = await profile.newPage();
    await page.setContent(
      `<body style="margin:0"><svg width="${width}" height="${height}" style="background:#fbfcfe">${lines}` +
        `<polyline points="${points}" fill="none" stroke="#c2410c" stroke-width="4"/></svg>`,
    );
    return await page.screenshot();
  } finally {
    await profile.close();
  }
}
