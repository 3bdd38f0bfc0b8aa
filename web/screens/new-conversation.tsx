import { useSignal } from '@preact/signals';
import type { PublicGroup } from '../core/api.ts';
import { sanitize } from '../../client/core/safe-text.ts';
import type { ChatState } from '../core/chat-state.ts';
import { words } from '../words/words.ts';
import { Modal, Problem } from './modal.tsx';

interface NewConversationProps {
  readonly chat: ChatState;
  /** Null: none was made. */
  readonly onChoose: (conversation: number | null) => void;
}

/** Opens a private conversation, creates a group, or joins a public one. */
export function NewConversation({ chat, onChoose }: NewConversationProps) {
  const problem = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  const groups = useSignal<readonly PublicGroup[] | null>(null);
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    isBusy.value = true;
    try {
      await work();
      problem.value = null;
    } catch (error) {
      problem.value = (error as Error).message;
    } finally {
      isBusy.value = false;
    }
  };
  const enter = (make: () => Promise<number>): void =>
    void attempt(async () => {
      const conversation = await make();
      await chat.reloadConversations();
      onChoose(conversation);
    });
  const find = (text: string): void =>
    void attempt(async () => {
      groups.value = await chat.api.findGroups(text);
    });
  return (
    <Modal title={words.newConversationTitle} onClose={() => onChoose(null)}>
      <Problem sentence={problem.value} />
      <Line
        label={words.writeToPerson}
        button={words.open}
        isBusy={isBusy.value}
        onSubmit={(nick) => enter(() => chat.api.openPrivateConversation(nick.replace(/^@/, '')))}
      />
      <Line
        label={words.titleOfGroup}
        button={words.create}
        isBusy={isBusy.value}
        onSubmit={(title) => enter(() => chat.api.createGroup(title))}
      />
      <Line label={words.findPublicGroup} button={words.search} isBusy={isBusy.value} onSubmit={find} />
      <div role="status">{groups.value?.length === 0 ? <p class="quiet">{words.noPublicGroup}</p> : null}</div>
      <PublicGroups
        groups={groups.value ?? []}
        isBusy={isBusy.value}
        onChoose={({ id, joined }) => (joined ? onChoose(id) : enter(() => chat.api.joinGroup(id)))}
      />
    </Modal>
  );
}

interface PublicGroupsProps {
  readonly groups: readonly PublicGroup[];
  readonly isBusy: boolean;
  readonly onChoose: (group: PublicGroup) => void;
}

function PublicGroups({ groups, isBusy, onChoose }: PublicGroupsProps) {
  return (
    <ul class="found">
      {groups.map((group) => (
        <li key={group.id}>
          <button type="button" disabled={isBusy} onClick={() => onChoose(group)}>
            <span dir="auto">{sanitize(group.title)}</span>
            <span class="quiet">
              {words.members(group.members)} · {group.joined ? words.open : words.join}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}

interface LineProps {
  readonly label: string;
  readonly button: string;
  readonly isBusy: boolean;
  readonly onSubmit: (text: string) => void;
}

function Line({ label, button, isBusy, onSubmit }: LineProps) {
  const text = useSignal('');
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (text.value.trim() !== '') onSubmit(text.value.trim());
      }}
    >
      <label>
        {label}
        <span class="modal-row">
          <input
            type="text"
            maxLength={200}
            autocomplete="off"
            value={text}
            onInput={(event) => {
              text.value = event.currentTarget.value;
            }}
          />
          <button type="submit" disabled={isBusy}>
            {button}
          </button>
        </span>
      </label>
    </form>
  );
}
