import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { sanitize } from '../../../client/core/safe-text.ts';
import { BotApi, type Bot } from '../../core/bot-api.ts';
import type { ChatState } from '../../core/chat-state.ts';
import { settingsWords } from '../../words/settings-words.ts';
import { ConfirmButton } from '../confirm-button.tsx';
import { TextField } from '../fields.tsx';
import { BotTokens } from './bot-tokens.tsx';
import { useRemote, type RemoteValue } from '../remote.tsx';
import type { SettingsPartProps } from './part-props.ts';
import { PartState } from './part-state.tsx';

/** The bots of the account, with their tokens. */
export function Bots({ chat }: SettingsPartProps) {
  const api = useMemo(() => new BotApi(chat.api), [chat]);
  const bots = useRemote(() => api.bots(), { chat, rereadsOnReconnect: true });
  return (
    <>
      <p class="quiet">{settingsWords.botsAre}</p>
      <PartState chat={chat} remote={bots} emptyText={settingsWords.noBots} />
      <ul class="settings-list">
        {(bots.value ?? []).map((bot) => (
          <BotItem key={bot.id} chat={chat} api={api} bot={bot} bots={bots} />
        ))}
      </ul>
      <CreateBot isBusy={bots.isBusy} onCreate={(nick, name) => bots.change(() => api.createBot(nick, name))} />
    </>
  );
}

interface BotItemProps {
  readonly chat: ChatState;
  readonly api: BotApi;
  readonly bot: Bot;
  readonly bots: Pick<RemoteValue<unknown>, 'isBusy' | 'change' | 'read'>;
}

function BotItem({ chat, api, bot, bots }: BotItemProps) {
  const isOpen = useSignal(false);
  const { id, nick, name, tokens } = bot;
  return (
    <li>
      <div class="settings-item">
        <span dir="auto">
          {sanitize(name)} (@{nick})
        </span>
      </div>
      <button
        type="button"
        aria-expanded={isOpen.value}
        aria-label={settingsWords.tokensOfBot(tokens, nick)}
        onClick={() => {
          isOpen.value = !isOpen.value;
        }}
      >
        {settingsWords.tokens(tokens)}
      </button>
      <ConfirmButton
        label={settingsWords.removeBot}
        question={settingsWords.removeBotQuestion(nick)}
        isBusy={bots.isBusy}
        onConfirm={() => void bots.change(() => api.removeBot(id))}
      />
      {isOpen.value ? <BotTokens chat={chat} api={api} bot={bot} onChange={() => void bots.read()} /> : null}
    </li>
  );
}

interface CreateBotProps {
  readonly isBusy: boolean;
  /** Resolves to whether the bot was created. */
  readonly onCreate: (nick: string, name: string) => Promise<boolean>;
}

function CreateBot({ isBusy, onCreate }: CreateBotProps) {
  const nick = useSignal('');
  const name = useSignal('');
  const create = async (): Promise<void> => {
    if (!(await onCreate(nick.value.trim(), name.value))) return;
    nick.value = '';
    name.value = '';
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void create();
      }}
    >
      <h4>{settingsWords.createBot}</h4>
      <TextField label={settingsWords.botNick} text={nick} maxLength={32} isRequired />
      <TextField label={settingsWords.botName} text={name} maxLength={200} />
      <div class="panel-buttons">
        <button class="primary" type="submit" disabled={isBusy || nick.value.trim() === ''}>
          {settingsWords.createBot}
        </button>
      </div>
    </form>
  );
}
