import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { isTransient } from '../../../client/core/chat-error.ts';
import { sanitize } from '../../../client/core/safe-text.ts';
import type { Api } from '../../core/api.ts';
import type { AppState } from '../../core/app-state.ts';
import type { ChatState } from '../../core/chat-state.ts';
import { DirectoryApi, type InvitePreview } from '../../core/people/directory-api.ts';
import { asSentence, signInWords as words } from '../../words/sign-in-words.ts';
import { useAttempt } from '../attempt.ts';

export interface InvitationProps {
  readonly state: AppState;
  readonly chat: ChatState;
  /** The token of the invitation that opened the page. */
  readonly invite: string;
}

/** Shows the group of the invitation to a signed-in person, who can join the group or decline. */
export function Invitation({ state, chat, invite }: InvitationProps) {
  const { problem, isBusy, run } = useAttempt();
  const isInvalid = useSignal(false);
  const close = (): void => {
    state.invite.value = null;
  };
  const join = (): void =>
    void run(async () => {
      const { group: conversation } = await new DirectoryApi(state.api).joinByInvite(invite);
      await chat.reloadConversations();
      close();
      state.go({ screen: 'conversation', conversation, seq: null });
    });
  return (
    <main class="box sign-in">
      <h1 dir="auto">{state.place.projectName}</h1>
      <InviteSummary
        api={state.api}
        invite={invite}
        onInvalid={() => {
          isInvalid.value = true;
        }}
      />
      {problem === null ? null : (
        <p class="error" role="alert">
          {asSentence(problem)}
        </p>
      )}
      <div class="form-row">
        {isInvalid.value ? null : (
          <button class="primary" type="button" disabled={isBusy} onClick={join}>
            {words.join}
          </button>
        )}
        <button type="button" onClick={close}>
          {words.notNow}
        </button>
      </div>
    </main>
  );
}

interface InviteSummaryProps {
  readonly api: Api;
  readonly invite: string;
  /** A sentence on how to join. */
  readonly hint?: string;
  /** Called when the server refuses the invitation. */
  readonly onInvalid: () => void;
}

/** The group of an invitation, or why the invitation is invalid. */
export function InviteSummary({ api, invite, hint, onInvalid }: InviteSummaryProps) {
  const preview = useSignal<InvitePreview | null>(null);
  const problem = useSignal<string | null>(null);
  useEffect(() => {
    new DirectoryApi(api).previewInvite(invite).then(
      (readPreview) => {
        preview.value = readPreview;
      },
      (error: Error) => {
        problem.value = error.message;
        if (!isTransient(error)) onInvalid();
      },
    );
  }, [invite]);
  if (problem.value !== null)
    return (
      <p class="error" role="alert">
        {asSentence(problem.value)}
      </p>
    );
  if (preview.value === null) return null;
  const { group, invited_by: inviter } = preview.value;
  return (
    <div class="notice">
      <p dir="auto">
        {words.invitedTo(sanitize(group.title), inviter === null ? null : sanitize(inviter))} {hint}
      </p>
      {group.about === null ? null : (
        <p class="about-text" dir="auto">
          {group.about}
        </p>
      )}
      <p class="quiet">{words.members(group.members)}</p>
    </div>
  );
}
