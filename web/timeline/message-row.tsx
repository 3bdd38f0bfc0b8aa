import { Component, type JSX } from 'preact';
import { noticeText } from '../../client/core/notice-text.ts';
import { sanitize } from '../../client/core/safe-text.ts';
import type { Message, Notice } from '../../client/core/shapes.ts';
import { clockTimeOf, dayOf, isSameDay, momentOf, timeOfDay } from '../words/dates.ts';
import { timelineWords } from '../words/timeline-words.ts';
import { words } from '../words/words.ts';
import { MessageCard } from './message-card.tsx';
import { MessageFiles } from './message-files.tsx';
import { PersonLink } from './person-link.tsx';
import type { PictureFile } from './pictures.ts';
import { RichText } from './rich-text.tsx';

/** A message that follows one of the same sender within this time shows no heading of its own. */
const SHARED_HEADING_MS = 5 * 60 * 1_000;
const AVATAR_HUE_COUNT = 12;
/**
 * The value of `aria-setsize` for a list of unknown size. With the real number, each new message would draw every row
 * again: at 1,000 messages a second the page then lagged by seconds.
 */
const UNKNOWN_SIZE = -1;

/** One row of the timeline. */
interface MessageRowProps {
  readonly index: number;
  readonly seq: number;
  /** Undefined: this message or the previous one is not fetched yet. */
  readonly message: Message | undefined;
  /** The previous message; null: there is none. */
  readonly previous: Message | null;
  /** The notices before the first message of a conversation; other rows have none. */
  readonly noticesBefore: readonly Notice[];
  readonly notices: readonly Notice[];
  readonly isFirstUnread: boolean;
  readonly isJumpedTo: boolean;
  /**
   * `waiting`: the person can still undo the deletion. `sent`: the page waits for the server's answer. Null: no
   * deletion.
   */
  readonly deletion: 'waiting' | 'sent' | null;
  /** Whether the Tab key leads to this message of the list. */
  readonly isTabStop: boolean;
  readonly mayEdit: boolean;
  readonly mayDelete: boolean;
  readonly ownNick: string;
  readonly filesBase: string;
  readonly actions: RowActions;
}

/** The actions of the buttons of a row. */
export interface RowActions {
  readonly edit: (message: Message) => void;
  readonly remove: (seq: number) => void;
  readonly undoRemove: (seq: number) => void;
  /** Opens the menu of a message beside an element. */
  readonly openMenu: (seq: number, anchor: HTMLElement) => void;
  /** Called when the message that the page scrolled to has flashed. */
  readonly endFlash: () => void;
  readonly openPicture: (picture: PictureFile) => void;
}

/** A row of the timeline, which is drawn again only if a prop has changed. */
export class MessageRow extends Component<MessageRowProps> {
  override shouldComponentUpdate(next: MessageRowProps): boolean {
    const names = Object.keys(next) as (keyof MessageRowProps)[];
    return names.some((name) =>
      name === 'notices' || name === 'noticesBefore'
        ? next[name].length !== this.props[name].length
        : next[name] !== this.props[name],
    );
  }

  override render(): JSX.Element {
    const { index, message, previous, noticesBefore, notices, isFirstUnread, isJumpedTo, actions } = this.props;
    const isNewDay = message !== undefined && (previous === null || !isSameDay(previous.sent_at, message.sent_at));
    return (
      <div
        class={isJumpedTo ? 'row jumped-to' : 'row'}
        data-index={index}
        onAnimationEnd={isJumpedTo ? actions.endFlash : undefined}
      >
        <Notices notices={noticesBefore} />
        {isNewDay ? <div class="day">{dayOf(message.sent_at)}</div> : null}
        {isFirstUnread ? <div class="new">{words.newMessages}</div> : null}
        {message === undefined ? (
          <div class="unloaded" aria-hidden="true" />
        ) : (
          <Article {...this.props} message={message} isNewDay={isNewDay} />
        )}
        <Notices notices={notices} />
      </div>
    );
  }
}

/** The notices of a conversation, as sentences. */
export function Notices({ notices }: { readonly notices: readonly Notice[] }) {
  return (
    <>
      {notices.map((notice, index) => (
        // Not a paragraph, which has a role: a feed may only have children with the role article, or with none.
        <div key={index} class="notice" dir="auto">
          {noticeText(notice)} <time dateTime={notice.at}>{timeOfDay(notice.at)}</time>
        </div>
      ))}
    </>
  );
}

type ArticleProps = MessageRowProps & { readonly message: Message; readonly isNewDay: boolean };

function Article(props: ArticleProps) {
  const { seq, message, previous, isNewDay, isFirstUnread, deletion, isTabStop } = props;
  const isContinued = !isNewDay && !isFirstUnread && previous !== null && sharesHeading(previous, message);
  return (
    <article
      class={isContinued ? 'message continued' : 'message'}
      aria-setsize={UNKNOWN_SIZE}
      aria-posinset={seq}
      aria-labelledby={`from-${seq}`}
      aria-describedby={`said-${seq}`}
      tabIndex={isTabStop ? 0 : -1}
    >
      {isContinued ? (
        <time class="aside-time" dateTime={message.sent_at}>
          {clockTimeOf(message.sent_at)}
        </time>
      ) : (
        <Avatar message={message} />
      )}
      <div class="body">
        <Heading message={message} seq={seq} isHidden={isContinued} />
        <div class="said" id={`said-${seq}`}>
          {deletion === null ? <Content {...props} /> : <DeletionLine {...props} />}
        </div>
      </div>
      {deletion === null && message.deleted !== true ? <Toolbar {...props} /> : null}
    </article>
  );
}

function DeletionLine({ seq, deletion, actions }: ArticleProps) {
  return (
    <p class="quiet">
      {words.deletedSoon}{' '}
      {deletion === 'waiting' ? (
        <button class="link" type="button" onClick={() => actions.undoRemove(seq)}>
          {words.undo}
        </button>
      ) : null}
    </p>
  );
}

function Heading({
  message,
  seq,
  isHidden,
}: {
  readonly message: Message;
  readonly seq: number;
  readonly isHidden: boolean;
}) {
  const { sender, label, sent_at: sentAt } = message;
  return (
    <p class={isHidden ? 'heading unseen' : 'heading'} id={`from-${seq}`}>
      <strong dir="auto" title={sender.nick === null ? sanitize(sender.name) : `@${sanitize(sender.nick)}`}>
        {isHidden || sender.kind === 'webhook' ? (
          sanitize(label ?? sender.name)
        ) : (
          <PersonLink person={{ user: sender.id, name: sender.name, label: label ?? null }}>
            {sanitize(label ?? sender.name)}
          </PersonLink>
        )}
      </strong>
      {sender.kind === 'user' ? null : (
        <span class="mark">{sender.kind === 'webhook' ? words.webhook : words.bot}</span>
      )}
      <time dateTime={sentAt} title={momentOf(sentAt)}>
        {timeOfDay(sentAt)}
      </time>
    </p>
  );
}

function Content({ message, ownNick, filesBase, actions }: ArticleProps) {
  const { text, cards = [], attachments = [], deleted, edited_at: editedAt } = message;
  if (deleted === true) return <p class="quiet">{words.deleted}</p>;
  return (
    <>
      {cards.length > 0 ? cards.map((card, index) => <MessageCard key={index} card={card} ownNick={ownNick} />) : null}
      {cards.length === 0 && text !== '' ? <RichText text={text} ownNick={ownNick} /> : null}
      {attachments.length > 0 ? (
        <MessageFiles files={attachments} filesBase={filesBase} onOpen={actions.openPicture} />
      ) : null}
      {editedAt === undefined ? null : (
        <span class="edited" title={momentOf(editedAt)}>
          {words.edited}
        </span>
      )}
    </>
  );
}

function Toolbar({ message, seq, mayEdit, mayDelete, actions }: ArticleProps) {
  return (
    <div class="tools">
      {mayEdit ? (
        <button type="button" aria-label={words.editMessage(seq)} onClick={() => actions.edit(message)}>
          {words.edit}
        </button>
      ) : null}
      {mayDelete ? (
        <button type="button" aria-label={words.deleteMessage(seq)} onClick={() => actions.remove(seq)}>
          {words.delete}
        </button>
      ) : null}
      <button
        type="button"
        aria-haspopup="menu"
        aria-label={timelineWords.moreOf(seq)}
        onClick={(event) => actions.openMenu(seq, event.currentTarget)}
      >
        ⋯
      </button>
    </div>
  );
}

function Avatar({ message: { sender, label } }: { readonly message: Message }) {
  const name = sanitize(label ?? sender.name);
  const initial = /[\p{L}\p{N}]/u.exec(name)?.[0] ?? '?';
  return (
    <span class={`avatar hue-${Math.abs(sender.id) % AVATAR_HUE_COUNT}`} aria-hidden="true">
      {initial.toUpperCase()}
    </span>
  );
}

function sharesHeading(previous: Message, message: Message): boolean {
  const isSameSender =
    previous.sender.id === message.sender.id &&
    previous.sender.kind === message.sender.kind &&
    previous.label === message.label;
  return isSameSender && Date.parse(message.sent_at) - Date.parse(previous.sent_at) < SHARED_HEADING_MS;
}
