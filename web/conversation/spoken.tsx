import { useEffect, useMemo } from 'preact/hooks';
import { sanitize } from '../../client/core/safe-text.ts';
import type { Message } from '../../client/core/shapes.ts';
import type { ChatState } from '../core/chat-state.ts';
import type { ConversationEntry } from '../core/unread.ts';
import { Announcements } from '../timeline/announcements.ts';
import { timelineWords } from '../words/timeline-words.ts';
import { words } from '../words/words.ts';

/** A screen reader announces only the beginning of a longer message. A person can read all of it in the list. */
const MAX_SPOKEN_CHARACTERS = 300;

/**
 * Contains the text that screen readers announce. With `role="status"` a screen reader first finishes its current
 * sentence.
 */
export function SpokenAnnouncements({ announcements }: { readonly announcements: Announcements }) {
  return (
    <p class="unseen" role="status">
      {announcements.text.value}
    </p>
  );
}

/** The announcements for screen readers about the open conversation. */
export function useAnnouncements(chat: ChatState, { info, lastSeq }: ConversationEntry): Announcements {
  const announcements = useMemo(
    () =>
      new Announcements({
        lastSeq,
        messageAt: (seq) => chat.pages.get(info.id, seq),
        isOwn: ({ sender }) => sender.kind === 'user' && sender.id === chat.account.id,
        wordsOf: ({ count, onlyMessage: only }) =>
          only === null ? timelineWords.newMessages(count) : spokenText(only),
      }),
    [info.id],
  );
  useEffect(() => announcements.update(lastSeq), [lastSeq]);
  useEffect(() => () => announcements.stop(), [announcements]);
  return announcements;
}

function spokenText({ sender, label, text, attachments = [] }: Message): string {
  const spokenContent = text.trim() === '' ? words.files(attachments.length) : text.slice(0, MAX_SPOKEN_CHARACTERS);
  return timelineWords.messageOf(sanitize(label ?? sender.name), sanitize(spokenContent));
}
