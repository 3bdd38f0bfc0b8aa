/**
 * The thread that reads large bodies of posts. It parses what strangers send, so its memory is bounded, and
 * `large-post-reader.ts` terminates it when it takes too long.
 */
import { parentPort, type MessagePort } from 'node:worker_threads';
import type { IgnoredEvent } from '../../callers/core/message-form.ts';
import { KlatchError, type ErrorCode } from '../../errors.ts';
import type { AlertChange } from '../../model/alert.ts';
import type { AlertMessage, AlertPost, AlertTexts } from '../../operations/messages/alert-writer.ts';
import type { WebhookMessage } from '../../operations/messages/post-webhook.ts';
import type { PostContext } from '../callers/caller-input.ts';
import { formatNamed } from '../callers/caller-paths.ts';
import { readFormFields, readPost } from '../post-reading.ts';

/** A request without its body and without functions, which cannot be sent to a thread. */
type LargePostRequest = Omit<PostContext, 'format' | 'onFormat'> & { readonly formatName: string | null };

/** A call of the thread. The thread answers its calls one after the other. */
export type ThreadCall =
  | { readonly kind: 'read'; readonly id: number; readonly body: Uint8Array; readonly request: LargePostRequest }
  /** Asks for the texts of the alert that the call `id` read. */
  | {
      readonly kind: 'write-texts';
      readonly id: number;
      readonly change: AlertChange;
      readonly shown: AlertMessage | null;
    }
  /** Drops the alert that the call `id` read: nobody needs its texts any longer. Has no answer. */
  | { readonly kind: 'forget'; readonly id: number };

/** A file that a body held; `content` is a copy. */
interface SentFile {
  readonly name: string;
  readonly content: Uint8Array;
}

export type ThreadResult =
  | IgnoredEvent
  | { readonly alert: Omit<AlertPost, 'writeTexts'>; readonly text: string }
  | { readonly message: WebhookMessage; readonly files: readonly SentFile[] }
  | { readonly texts: AlertTexts }
  | { readonly errorCode: ErrorCode; readonly sentence: string; readonly cause: string | null };

/** The answer to a call, the name of the format that a body was read as, and how long the thread worked for it. */
export interface ThreadAnswer {
  readonly result: ThreadResult;
  readonly formatName: string | null;
  readonly tookMs: number;
}

/** The most alerts whose texts may still be asked for. Above this number the oldest alert is dropped. */
const MAX_UNWRITTEN_ALERTS = 100;

function serve(port: MessagePort): void {
  const writersById = new Map<number, AlertPost['writeTexts']>();
  const keep = (id: number, writeTexts: AlertPost['writeTexts']): void => {
    const [oldest] = writersById.keys();
    if (writersById.size >= MAX_UNWRITTEN_ALERTS) writersById.delete(oldest!);
    writersById.set(id, writeTexts);
  };
  const answerCall = async (
    call: Exclude<ThreadCall, { kind: 'forget' }>,
    onFormat: PostContext['onFormat'],
  ): Promise<ThreadResult> => {
    if (call.kind === 'read') return read(call, onFormat, keep);
    const writeTexts = writersById.get(call.id);
    if (writeTexts === undefined) throw new KlatchError('overloaded');
    return { texts: await writeTexts(call.change, call.shown) };
  };
  port.on('message', (call: ThreadCall) => {
    if (call.kind === 'forget') {
      writersById.delete(call.id);
      return;
    }
    const startedMs = performance.now();
    let formatName: string | null = null;
    void answerCall(call, ({ name }) => (formatName = name))
      .catch(errorResult)
      .then((result) => {
        const tookMs = performance.now() - startedMs;
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is for windows of a browser.
        port.postMessage({ result, formatName, tookMs } satisfies ThreadAnswer);
      });
  });
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is for windows of a browser.
  port.postMessage('ready');
}

async function read(
  { id, body: bytes, request: { formatName, ...request } }: Extract<ThreadCall, { kind: 'read' }>,
  onFormat: PostContext['onFormat'],
  keep: (id: number, writeTexts: AlertPost['writeTexts']) => void,
): Promise<ThreadResult> {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const context = { ...request, format: formatNamed(formatName), onFormat };
  const fields = await readFormFields(body, request.headers);
  const post = readPost({ body, fields }, context, (work) => work());
  if ('alertPost' in post) {
    const { writeTexts, ...alert } = post.alertPost;
    keep(id, writeTexts);
    return { alert, text: post.text };
  }
  if (!('message' in post)) return post;
  // The content is copied: a small Buffer shares a block of memory with others, and the whole block would be sent.
  const files = post.files.map(({ name, content }) => ({ name, content: new Uint8Array(content) }));
  return { message: post.message, files };
}

function errorResult(error: unknown): ThreadResult {
  if (error instanceof KlatchError) return { errorCode: error.code, sentence: error.message, cause: null };
  const { message, stack } = error instanceof Error ? error : new Error(typeof error);
  return { errorCode: 'internal', sentence: new KlatchError('internal').message, cause: stack ?? message };
}

if (parentPort !== null) serve(parentPort);
