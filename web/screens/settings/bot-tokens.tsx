import { useSignal } from '@preact/signals';
import { sanitize } from '../../../client/core/safe-text.ts';
import type { Bot, BotApi, BotToken, CreatedToken, NewToken } from '../../core/bot-api.ts';
import type { ChatState } from '../../core/chat-state.ts';
import { briefMomentOf, dateOf } from '../../words/dates.ts';
import { scopeWords, settingsWords } from '../../words/settings-words.ts';
import { ConfirmButton } from '../confirm-button.tsx';
import { TextField } from '../fields.tsx';
import { useRemote } from '../remote.tsx';
import { LifetimeField, secondsOf, NO_TIME_LIMIT } from './lifetime-field.tsx';
import { PartState } from './part-state.tsx';
import { SecretOnce } from './secret-once.tsx';

interface BotTokensProps {
  readonly chat: ChatState;
  readonly api: BotApi;
  readonly bot: Bot;
  /** Called after the number of tokens has changed. */
  readonly onChange: () => void;
}

/** The tokens with which a bot acts. */
export function BotTokens({ chat, api, bot, onChange }: BotTokensProps) {
  const tokens = useRemote(() => api.tokens(bot.id), { chat, rereadsOnReconnect: true });
  const created = useSignal<CreatedToken | null>(null);
  const change = async (work: () => Promise<unknown>): Promise<boolean> => {
    const isDone = await tokens.change(work);
    if (isDone) onChange();
    return isDone;
  };
  const create = (token: NewToken): Promise<boolean> =>
    change(async () => {
      created.value = await api.createToken(bot.id, token);
    });
  return (
    <section class="bot-tokens" aria-label={settingsWords.tokensOf(bot.nick)}>
      <PartState chat={chat} remote={tokens} emptyText={settingsWords.noTokens} />
      <ul class="settings-list">
        {(tokens.value ?? []).map((token) => (
          <TokenItem
            key={token.id}
            token={token}
            isBusy={tokens.isBusy}
            onRevoke={() => void change(() => api.revokeToken(bot.id, token.id))}
          />
        ))}
      </ul>
      {created.value === null ? (
        <CreateToken isBusy={tokens.isBusy} onCreate={create} />
      ) : (
        <SecretOnce
          label={created.value.label}
          secret={created.value.token}
          onDone={() => {
            created.value = null;
          }}
        />
      )}
    </section>
  );
}

interface TokenItemProps {
  readonly token: BotToken;
  readonly isBusy: boolean;
  readonly onRevoke: () => void;
}

function TokenItem({ token, isBusy, onRevoke }: TokenItemProps) {
  const { label, scopes, used_at: lastUsedAt, expires_at: expiresAt } = token;
  return (
    <li>
      <div class="settings-item">
        <span dir="auto">{sanitize(label)}</span>
        <span class="quiet">
          {scopes.join(', ')} · {settingsWords.lastUsedAt(briefMomentOf(lastUsedAt))}
          {expiresAt === null ? null : ` · ${settingsWords.expiresAt(dateOf(expiresAt))}`}
        </span>
      </div>
      <ConfirmButton
        label={settingsWords.revoke}
        question={settingsWords.revokeQuestion}
        isBusy={isBusy}
        onConfirm={onRevoke}
      />
    </li>
  );
}

interface CreateTokenProps {
  readonly isBusy: boolean;
  /** Resolves to whether the token was created. */
  readonly onCreate: (token: NewToken) => Promise<boolean>;
}

function CreateToken({ isBusy, onCreate }: CreateTokenProps) {
  const label = useSignal('');
  const days = useSignal(NO_TIME_LIMIT);
  const scopes = useSignal<readonly string[]>([]);
  const toggle = (scope: string, isWanted: boolean): void => {
    scopes.value = Object.keys(scopeWords).filter((each) => (each === scope ? isWanted : scopes.value.includes(each)));
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void onCreate({ label: label.value, scopes: scopes.value, expiresInS: secondsOf(days.value) });
      }}
    >
      <h4>{settingsWords.createToken}</h4>
      <TextField label={settingsWords.tokenLabel} text={label} maxLength={100} isRequired />
      <fieldset class="choice">
        <legend>{settingsWords.tokenScopes}</legend>
        {Object.entries(scopeWords).map(([scope, meaning]) => (
          <label key={scope} class="check">
            <input
              type="checkbox"
              checked={scopes.value.includes(scope)}
              onChange={(event) => toggle(scope, event.currentTarget.checked)}
            />
            <span>
              <code>{scope}</code> <span class="quiet">{meaning}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <LifetimeField days={days} />
      <div class="panel-buttons">
        <button
          class="primary"
          type="submit"
          disabled={isBusy || label.value.trim() === '' || scopes.value.length === 0}
        >
          {settingsWords.createToken}
        </button>
      </div>
    </form>
  );
}
