import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { Conversation, post, SETUP } from './support/conversation.ts';
import { Host } from './support/host.ts';
import { Repository } from './support/repository.ts';

const FILL =
  'dd if=/dev/zero of=/var/lib/klatch/ballast bs=1M 2>/dev/null; dd if=/dev/zero of=/var/lib/klatch/ballast2 bs=512 2>/dev/null; true';
const EMPTY = 'rm -f /var/lib/klatch/ballast /var/lib/klatch/ballast2';

/** Each test continues from the state that the previous one left. */
describe('a disk that is full', () => {
  let repository: Repository;
  let host: Host;
  let conversation: Conversation;

  beforeAll(async () => {
    repository = await Repository.start();
    host = await Host.start('bookworm');
    await host.machine.must('mkdir -p /var/lib/klatch && mount -t tmpfs -o size=300m,mode=755 small /var/lib/klatch');
    await host.install(repository, '--embedded');
    await host.machine.must(`${SETUP} --embedded && service klatch start`);
    conversation = await Conversation.open(host);
    await conversation.say();
  });

  afterAll(async () => {
    await conversation?.stop();
    await host?.stop();
    await repository?.stop();
  });

  const answerToPost = async (): Promise<number> => {
    const answer = await post(conversation.webhook, { text: 'x'.repeat(30_000) }).catch(() => null);
    return answer?.status ?? 0;
  };

  test('makes the server refuse posts', async () => {
    await host.machine.must(FILL);
    // The existing segments of the write-ahead log still have room. At the latest when it is used up, posts fail.
    await eventually(answerToPost, (status) => status === 503);
  });

  test('keeps it from starting, which it says, and nothing is lost when there is room again', async () => {
    await host.machine.must('service klatch stop');
    await host.machine.must(FILL);
    const ran = await host.service('start', 'disk full');
    expect(ran).toMatchObject({ code: 1 });
    expect(ran.stdout + ran.stderr).toMatch(/space|full|room/i);
    await host.machine.must(EMPTY);
    expect(await host.service('start', 'room again')).toMatchObject({ code: 0 });
    await conversation.say();
    expect(conversation.texts().filter((text) => text.startsWith('message'))).toEqual(['message 1', 'message 2']);
  });
});
