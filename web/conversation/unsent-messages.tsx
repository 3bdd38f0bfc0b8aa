import { sanitize } from '../../client/core/safe-text.ts';
import type { ChatState } from '../core/chat-state.ts';
import type { QueuedMessage } from '../core/send-queue.ts';
import { RichText } from '../timeline/rich-text.tsx';
import { words } from '../words/words.ts';

interface UnsentMessagesProps {
  readonly chat: ChatState;
  readonly entries: readonly QueuedMessage[];
}

/** The messages of the send queue, which the conversation does not contain at a seq yet. */
export function UnsentMessages({ chat, entries }: UnsentMessagesProps) {
  return (
    <>
      {entries.map(({ clientId, text, files = [], refusal }) => (
        <article key={clientId} class={refusal === null ? 'message pending' : 'message pending failed'}>
          <div class="body">
            <RichText text={text} ownNick={chat.account.nick} />
            {files.map(({ id, name }) => (
              <p key={id} class="quiet" dir="auto">
                {sanitize(name)}
              </p>
            ))}
            {refusal === null ? (
              <span class="unseen">{words.sending}</span>
            ) : (
              <p class="error" role="alert">
                {words.notSent}: {refusal}{' '}
                <button class="link" type="button" onClick={() => chat.sendQueue.retry(clientId)}>
                  {words.sendAgain}
                </button>{' '}
                <button class="link" type="button" onClick={() => chat.sendQueue.discard(clientId)}>
                  {words.delete}
                </button>
              </p>
            )}
          </div>
        </article>
      ))}
    </>
  );
}
