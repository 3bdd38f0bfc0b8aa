import { useMemo } from 'preact/hooks';
import { errorSentence } from '../../../client/core/delivery-sentences.ts';
import { sanitize } from '../../../client/core/safe-text.ts';
import { AdminApi, type ServerStatus } from '../../core/admin/admin-api.ts';
import { adminWords } from '../../words/admin-words.ts';
import { shortMomentOf, momentOf } from '../../words/dates.ts';
import { hookWords } from '../../words/hook-words.ts';
import { useRemote } from '../remote.tsx';
import type { SettingsPartProps } from '../settings/part-props.ts';
import { PartState } from '../settings/part-state.tsx';
import { HookStateMark } from '../webhooks/hook-state.tsx';

const REREAD_MS = 10_000;

/** What the server says about itself: readiness, version, database, queues, and its reverse webhooks by state. */
export function ServerStatusPart({ chat }: SettingsPartProps) {
  const api = useMemo(() => new AdminApi(chat.api), [chat]);
  const status = useRemote(() => api.status(), { chat, rereadsOnReconnect: true, rereadEveryMs: REREAD_MS });
  const { value } = status;
  return (
    <>
      <PartState chat={chat} remote={status} />
      {value === null ? null : (
        <>
          {status.problem === null ? <Readiness isReady={value.ready} /> : null}
          <Figures status={value} />
          <h4>{adminWords.deliveries}</h4>
          <Deliveries deliveries={value.deliveries} />
        </>
      )}
    </>
  );
}

/** Shown only if the last read succeeded: an older answer does not say that the server works now. */
function Readiness({ isReady }: { readonly isReady: boolean }) {
  return (
    <p class={isReady ? 'server-ready' : 'error'} role="status">
      {isReady ? adminWords.ready : adminWords.notReady}
    </p>
  );
}

function Figures({ status }: { readonly status: ServerStatus }) {
  const servers = status.database_servers.map(({ server, used, rejection }) =>
    used ? adminWords.serverUsed(server) : adminWords.serverUnused(server, rejection),
  );
  const rows: readonly (readonly [name: string, value: string])[] = [
    [adminWords.version, status.version],
    [adminWords.running, momentOf(status.started_at)],
    [adminWords.address, status.base_uri],
    [adminWords.listeners, status.listeners.join(', ')],
    [adminWords.database, status.database],
    ...(servers.length === 0 ? [] : [[adminWords.databaseServers, servers.join('; ')] as const]),
    [adminWords.waitingPosts, String(status.waiting_posts)],
    [adminWords.inFlight, String(status.deliveries_in_flight)],
  ];
  return <FigureList rows={rows} />;
}

function FigureList({ rows }: { readonly rows: readonly (readonly [name: string, value: string])[] }) {
  return (
    <dl class="figures">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{sanitize(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function Deliveries({ deliveries }: { readonly deliveries: ServerStatus['deliveries'] }) {
  if (deliveries === null) return <p class="quiet">{adminWords.notRead}</p>;
  const {
    age_ms: ageMs,
    hooks,
    pending_hooks: pendingHooks,
    oldest_pending_at: oldest,
    last_errors: errors,
  } = deliveries;
  return (
    <>
      <p class="quiet">{adminWords.asOf(Math.round(ageMs / 1_000))}</p>
      <ul class="states">
        {Object.entries(hooks).map(([state, count]) => (
          <li key={state}>
            <HookStateMark state={state} /> {count}
          </li>
        ))}
      </ul>
      <FigureList
        rows={[
          [adminWords.pendingHooks, String(pendingHooks)],
          [adminWords.oldestPending, oldest === null ? adminWords.none : shortMomentOf(oldest)],
        ]}
      />
      <h4>{adminWords.lastErrors}</h4>
      {errors.length === 0 ? <p class="quiet">{adminWords.noErrors}</p> : null}
      <ul class="settings-list" aria-label={hookWords.lastError}>
        {errors.map((error) => (
          <li key={`${error.hook} ${error.at}`}>
            {adminWords.errorOf(
              error.hook,
              error.group,
              sanitize(error.host),
              errorSentence(error),
              shortMomentOf(error.at),
            )}
          </li>
        ))}
      </ul>
    </>
  );
}
