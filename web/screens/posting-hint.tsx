import { objectWithAtLeast, string } from '../../client/core/decode.ts';
import type { ChatState } from '../core/chat-state.ts';
import { words } from '../words/words.ts';
import { CopyButton } from './copy-button.tsx';
import { useRemote } from './remote.tsx';

const decodeToken = objectWithAtLeast({ webhook: string });

interface PostingHintProps {
  readonly chat: ChatState;
  readonly group: number;
}

/** Shows a command that posts into a group. It is only a hint, so it shows nothing if the server does not answer. */
export function PostingHint({ chat, group }: PostingHintProps) {
  const { value } = useRemote(() => chat.api.call('groups.show-token', { group }, decodeToken), { chat, key: group });
  if (value === null) return null;
  const command = `curl -d 'hello' ${value.webhook}`;
  return (
    <div class="posting-hint">
      <p>{words.postingHint}</p>
      <code>{command}</code>
      <CopyButton text={command} />
    </div>
  );
}
