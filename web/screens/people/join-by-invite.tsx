import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { sanitize } from '../../../client/core/safe-text.ts';
import type { ChatState } from '../../core/chat-state.ts';
import { DirectoryApi } from '../../core/people/directory-api.ts';
import { momentOf } from '../../words/dates.ts';
import { peopleWords } from '../../words/people-words.ts';
import { words } from '../../words/words.ts';
import { useAttempt } from '../attempt.ts';
import { Problem } from '../modal.tsx';
import { RemoteState, useRemote } from '../remote.tsx';

interface JoinByInviteProps {
  readonly chat: ChatState;
  readonly token: string;
  /** Shows the group that was joined. */
  readonly onOpen: (group: number) => void;
}

/** Shows the group of an invitation with a button to join it, or that the invitation is invalid and whom to ask. */
export function JoinByInvite({ chat, token, onOpen }: JoinByInviteProps) {
  const directory = useMemo(() => new DirectoryApi(chat.api), [chat]);
  const remote = useRemote(() => directory.previewInvite(token), { chat, key: token });
  const preview = remote.value;
  return (
    <div class="invite-preview">
      <RemoteState remote={remote} />
      {remote.problem === null ? null : <p class="quiet">{peopleWords.askForNewLink}</p>}
      {preview === null || remote.problem !== null ? null : (
        <>
          <p class="quiet" dir="auto">
            {preview.invited_by === null ? peopleWords.invited : peopleWords.invitedBy(sanitize(preview.invited_by))}
          </p>
          <h3 dir="auto">{sanitize(preview.group.title)}</h3>
          <p class="quiet">{words.members(preview.group.members)}</p>
          {preview.group.about === null ? null : (
            <p class="about-text" dir="auto">
              {preview.group.about}
            </p>
          )}
          {preview.expires_at === null ? null : (
            <p class="quiet">{peopleWords.inviteHolds(momentOf(preview.expires_at))}</p>
          )}
          <JoinButton chat={chat} directory={directory} token={token} onOpen={onOpen} />
        </>
      )}
    </div>
  );
}

function JoinButton({ chat, directory, token, onOpen }: JoinByInviteProps & { readonly directory: DirectoryApi }) {
  const { problem, isBusy, run } = useAttempt();
  /** The group, if the account was already a member; null otherwise. */
  const alreadyJoinedGroup = useSignal<number | null>(null);
  const join = (): void =>
    void run(async () => {
      const { group, joined: isNew } = await directory.joinByInvite(token);
      await chat.reloadConversations();
      if (isNew) onOpen(group);
      else alreadyJoinedGroup.value = group;
    });
  const group = alreadyJoinedGroup.value;
  return (
    <>
      <Problem sentence={problem} />
      <p role="status">{group === null ? '' : peopleWords.alreadyIn}</p>
      {group === null ? (
        <button class="primary" type="button" disabled={isBusy} onClick={join}>
          {peopleWords.join}
        </button>
      ) : (
        <button class="primary" type="button" onClick={() => onOpen(group)}>
          {peopleWords.openGroup}
        </button>
      )}
    </>
  );
}
