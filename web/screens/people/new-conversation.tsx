import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { ChatState } from '../../core/chat-state.ts';
import { DirectoryApi, inviteTokenIn } from '../../core/people/directory-api.ts';
import { peopleWords } from '../../words/people-words.ts';
import { words } from '../../words/words.ts';
import { useAttempt } from '../attempt.ts';
import { CheckField, LongTextField, TextField } from '../fields.tsx';
import { Problem } from '../modal.tsx';
import { FindAccount } from './find-account.tsx';
import { JoinByInvite } from './join-by-invite.tsx';
import { PublicGroups } from './public-groups.tsx';

interface NewConversationProps {
  readonly chat: ChatState;
  /** Shows the conversation that was opened, created or joined. */
  readonly onOpen: (conversation: number) => void;
}

/** Opens a private conversation, creates a group, or joins a public group or the group of an invitation. */
export function NewConversation({ chat, onOpen }: NewConversationProps) {
  const directory = useMemo(() => new DirectoryApi(chat.api), [chat]);
  const { problem, isBusy, run } = useAttempt();
  const makeAndOpen = (make: () => Promise<number>): void =>
    void run(async () => {
      const conversation = await make();
      await chat.reloadConversations();
      onOpen(conversation);
    });
  return (
    <div class="new-conversation">
      <Problem sentence={problem} />
      <WriteToSomebody
        chat={chat}
        isBusy={isBusy}
        onOpen={(user) => makeAndOpen(() => chat.api.openPrivateConversation(user))}
      />
      <CreateGroup isBusy={isBusy} onCreate={(group) => makeAndOpen(() => directory.createGroup(group))} />
      <PublicGroups
        chat={chat}
        directory={directory}
        isBusy={isBusy}
        onOpen={onOpen}
        onJoin={(group) => makeAndOpen(() => directory.joinPublicGroup(group))}
      />
      <JoinByPastedLink chat={chat} onOpen={onOpen} />
    </div>
  );
}

interface WriteToSomebodyProps {
  readonly chat: ChatState;
  readonly isBusy: boolean;
  /** `user`: a number if the person was chosen from the list, a nick if it was typed. */
  readonly onOpen: (user: number | string) => void;
}

const NOBODY: ReadonlySet<number> = new Set();

function WriteToSomebody({ chat, isBusy, onOpen }: WriteToSomebodyProps) {
  const text = useSignal('');
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const nick = text.value.trim().replace(/^@/, '');
        if (nick !== '') onOpen(nick);
      }}
    >
      <FindAccount
        api={chat.api}
        label={peopleWords.nickOrName}
        text={text}
        excludedIds={NOBODY}
        takesFocus
        isBusy={isBusy}
        describe={peopleWords.writeTo}
        onChoose={({ id }) => onOpen(id)}
      />
      <div class="panel-buttons">
        <button type="submit" disabled={isBusy || text.value.trim() === ''}>
          {words.open}
        </button>
      </div>
    </form>
  );
}

interface CreateGroupProps {
  readonly isBusy: boolean;
  readonly onCreate: (group: { title: string; about: string | null; public: boolean }) => void;
}

function CreateGroup({ isBusy, onCreate }: CreateGroupProps) {
  const title = useSignal('');
  const about = useSignal('');
  const isPublic = useSignal(false);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const purpose = about.value.trim();
        onCreate({ title: title.value.trim(), about: purpose === '' ? null : purpose, public: isPublic.value });
      }}
    >
      <TextField label={words.titleOfGroup} text={title} maxLength={200} isRequired />
      {title.value.trim() === '' ? null : (
        <>
          <LongTextField label={words.groupAbout} text={about} maxLength={2_000} />
          <CheckField label={words.makePublic} checked={isPublic} />
        </>
      )}
      <div class="panel-buttons">
        <button type="submit" disabled={isBusy || title.value.trim() === ''}>
          {words.create}
        </button>
      </div>
    </form>
  );
}

/** A field for the link of an invitation, and then the group of the invitation. */
function JoinByPastedLink({ chat, onOpen }: NewConversationProps) {
  const text = useSignal('');
  const isRefused = useSignal(false);
  const token = useSignal<string | null>(null);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        token.value = inviteTokenIn(text.value);
        isRefused.value = token.value === null;
      }}
    >
      <TextField label={peopleWords.pasteInvite} text={text} maxLength={2_048} isRequired />
      <Problem sentence={isRefused.value ? peopleWords.notAnInvite : null} />
      {token.value === null ? null : <JoinByInvite key={token.value} chat={chat} token={token.value} onOpen={onOpen} />}
      <div class="panel-buttons">
        <button type="submit" disabled={text.value.trim() === ''}>
          {peopleWords.showInvitedGroup}
        </button>
      </div>
    </form>
  );
}
