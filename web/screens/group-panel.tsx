import { useMemo } from 'preact/hooks';
import type { AppState } from '../core/app-state.ts';
import type { ChatState } from '../core/chat-state.ts';
import { GroupApi } from '../core/group-api.ts';
import type { ConversationEntry } from '../core/unread.ts';
import { words } from '../words/words.ts';
import { useAttempt } from './attempt.ts';
import { ConfirmButton } from './confirm-button.tsx';
import { GroupAbout } from './group-about.tsx';
import { GroupInvites } from './group-invites.tsx';
import { GroupMembers } from './group-members.tsx';
import { Problem } from './modal.tsx';
import { NotificationSettings } from './notification-settings.tsx';
import type { PanelPartProps } from './panel-part.ts';
import { panelPartPropsOf } from './people/member-actions.tsx';
import { PersonCard } from './people/person-card.tsx';
import { useLoaded } from './loaded.ts';
import { RouteLink } from './route-link.tsx';

interface GroupPanelProps {
  readonly state: AppState;
  readonly chat: ChatState;
  readonly entry: ConversationEntry;
  readonly onClose: () => void;
}

/** The details of a conversation: its description, its members, and the settings that the account may change. */
export function GroupPanel(props: GroupPanelProps) {
  const route = props.state.route.value;
  const panel = route.screen === 'conversation' ? route.panel : undefined;
  return panel === undefined || panel === 'about' ? <Details {...props} /> : <LoadedWebhooks {...props} />;
}

const loadWebhooks = async () => (await import('./webhooks/webhooks-panel.tsx')).WebhooksPanel;

function LoadedWebhooks({ state, chat, entry }: GroupPanelProps) {
  const { part: Panel, hasFailed } = useLoaded(loadWebhooks);
  return (
    <>
      {Panel === null ? null : <Panel state={state} chat={chat} entry={entry} />}
      <Problem sentence={hasFailed ? words.cannotLoad : null} />
    </>
  );
}

function Details({ state, chat, entry, onClose }: GroupPanelProps) {
  const { id, kind, peer } = entry.info;
  const api = useMemo(() => new GroupApi(chat.api, id), [chat, id]);
  const part = panelPartPropsOf(chat, entry, api);
  return (
    <>
      {kind !== 'private' ? <GroupAbout {...part} /> : null}
      {peer === null ? null : (
        <section>
          <PersonCard
            chat={chat}
            reference={{ user: peer.id, name: peer.name, label: null }}
            entry={entry}
            onOpen={onClose}
          />
        </section>
      )}
      <NotificationSettings {...part} />
      {kind === 'private' ? null : (
        <>
          <GroupMembers {...part} />
          {part.mayManage && !entry.info.archived ? (
            <>
              <GroupInvites {...part} />
              <WebhookLinks state={state} conversation={id} />
            </>
          ) : null}
          <LeaveSection {...part} onClose={onClose} />
        </>
      )}
    </>
  );
}

function WebhookLinks({ state, conversation }: { readonly state: AppState; readonly conversation: number }) {
  const panels = ['integration', 'hooks'] as const;
  const shown = state.route.value;
  const seq = shown.screen === 'conversation' ? shown.seq : null;
  return (
    <section>
      <h3>{words.webhooks}</h3>
      <ul class="webhook-links">
        {panels.map((panel) => {
          const route = { screen: 'conversation', conversation, seq, panel } as const;
          return (
            <li key={panel}>
              <RouteLink
                state={state}
                route={route}
                label={words.webhookPanels[panel]}
                onFollow={() => state.go(route)}
              />
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** The buttons to leave and to archive the group. */
function LeaveSection({
  chat,
  api,
  entry,
  hasOwnerRights: mayOwn,
  onClose,
}: PanelPartProps & { readonly onClose: () => void }) {
  const { problem, isBusy, run } = useAttempt();
  const { role, archived } = entry.info;
  const isOwner = role === 'owner' && !archived;
  const leave = (): void =>
    void run(() => api.leave()).then((isDone) => {
      if (!isDone) return;
      onClose();
      void chat.reloadConversations();
    });
  const setArchived = (isArchived: boolean): void =>
    void run(async () => {
      await api.setArchived(isArchived);
      await chat.reloadConversations();
    });
  return (
    <section>
      <h3>{words.leaveOrArchive}</h3>
      <Problem sentence={problem} />
      {isOwner ? <p class="quiet">{words.ownerStays}</p> : null}
      <div class="panel-buttons">
        {isOwner ? null : (
          <ConfirmButton label={words.leave} question={words.leaveQuestion} isBusy={isBusy} onConfirm={leave} />
        )}
        {mayOwn && !archived ? (
          <ConfirmButton
            label={words.archive}
            question={words.archiveQuestion}
            isBusy={isBusy}
            onConfirm={() => setArchived(true)}
          />
        ) : null}
        {mayOwn && archived ? (
          <button type="button" disabled={isBusy} onClick={() => setArchived(false)}>
            {words.unarchive}
          </button>
        ) : null}
      </div>
    </section>
  );
}
