import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { discoverServerAddress } from '../../client/core/address.ts';
import { signUpByLink } from '../../test/client/core/process-people.ts';
import { postJson, type TestGroup } from '../../test/support/server.ts';
import type { ServerProcess } from '../../test/support/server-process.ts';
import { freePort } from '../../test/support/ports.ts';
import type { CleanUp } from '../clean-up.ts';
import { until } from '../until.ts';
import { readStoredTexts } from './past-the-server.ts';
import { RepeatingCaller } from './repeating-caller.ts';

/** Pause of the person between two commands. */
const GAP_MS = 50;
/** The bot works for a random time of at most this on each command, so that a kill may interrupt the delivery. */
const MAX_WORK_MS = 300;
const COMMAND = /^!cmd (\d+)$/;
const REPLY = /^done (\d+) by call \d+$/;

/** A bot that was written for Mattermost, and a person who sends it commands. */
export class CommandedBot {
  /** The number of commands that the server answered with 200. */
  commands = 0;
  /** The number of deliveries that the bot received. */
  calls = 0;
  readonly #server: ServerProcess;
  readonly #group: TestGroup;
  readonly #token: string;
  readonly #caller = new RepeatingCaller('a person');
  #isStopped = false;
  #commanding: Promise<void> = Promise.resolve();

  private constructor(server: ServerProcess, group: TestGroup, token: string) {
    this.#server = server;
    this.#group = group;
    this.#token = token;
  }

  static async start(server: ServerProcess, group: TestGroup, cleanUp: CleanUp): Promise<CommandedBot> {
    const address = await discoverServerAddress(`${server.url.replace('http', 'ws')}/v1/live`);
    const token = await signUpByLink(server, 'commander', address);
    await server.operate('groups.add-member', { group: group.id, user: 'commander', role: 'member' });
    const commanded = new CommandedBot(server, group, token);
    const bot = commanded.#listen();
    const port = await freePort();
    bot.listen(port, '127.0.0.1');
    await once(bot, 'listening');
    await cleanUp.add('bot', () => {
      bot.close();
      bot.closeAllConnections();
    });
    const hook = { url: `http://127.0.0.1:${port}/`, format: 'mattermost', triggers: ['!'], order: 'none' };
    const { status } = await postJson(`${group.webhook}/reverse`, hook);
    if (status !== 201) throw new Error(`the bot could not be registered: ${status}`);
    await cleanUp.add('person', () => commanded.abort());
    commanded.#commanding = commanded.#command();
    return commanded;
  }

  async abort(): Promise<void> {
    this.#caller.abort();
    this.#isStopped = true;
    await this.#commanding;
  }

  /** Resolves when every command has its reply. */
  async finish(): Promise<void> {
    this.#isStopped = true;
    await this.#commanding;
    await until('every command has its reply', async () => (await this.#replies()).length >= this.commands);
  }

  /** The violations in words: commands without a reply or with several, and wrong answers. Call it after `finish`. */
  async violations(): Promise<string[]> {
    const count = new Map<number, number>();
    for (const command of await this.#replies()) count.set(command, (count.get(command) ?? 0) + 1);
    const repeated = [...count.values()].filter((times) => times > 1).length;
    const missing = this.commands - count.size;
    return [
      ...this.#caller.violations,
      ...(repeated > 0 ? [`${repeated} commands were answered more than once`] : []),
      ...(missing !== 0 ? [`${missing} commands were not answered`] : []),
    ];
  }

  /** The numbers of the commands that have a reply in the group. */
  async #replies(): Promise<number[]> {
    const texts = await readStoredTexts(this.#server, this.#group.id);
    return texts.flatMap((text) => REPLY.exec(text)?.[1] ?? []).map(Number);
  }

  #listen(): Server {
    return createServer((req, res) => {
      void readText(req).then(
        async (body) => {
          const command = COMMAND.exec(new URLSearchParams(body).get('text') ?? '')?.[1];
          this.calls += 1;
          const reply = { text: `done ${command} by call ${this.calls}` };
          await wait(Math.random() * MAX_WORK_MS);
          res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
        },
        // The call fails if the server is killed during it.
        () => {},
      );
    });
  }

  async #command(): Promise<void> {
    const headers = { authorization: `Bearer ${this.#token}` };
    // oxlint-disable-next-line no-unmodified-loop-condition -- `finish` does.
    for (let n = 0; !this.#isStopped; n += 1) {
      const body = { conversation: this.#group.id, text: `!cmd ${n}`, client_id: `cmd-${n}` };
      if (!(await this.#caller.post(`${this.#server.url}/v1/api/messages.send`, { body, headers }))) return;
      this.commands += 1;
      await wait(GAP_MS);
    }
  }
}
