import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import {
  appearanceChoices,
  applyAppearance,
  keepAppearance,
  readAppearance,
  type AppearanceSetting,
} from '../../core/appearance.ts';
import { settingsWords } from '../../words/settings-words.ts';
import type { SettingsPartProps } from './part-props.ts';

/** The settings for the look of the page in this browser. */
export function AppearanceSettings({ state }: SettingsPartProps) {
  const { pathname } = state.place.base;
  const appearance = useSignal(readAppearance(pathname));
  const isKept = useSignal(true);
  useEffect(() => {
    const follow = (): void => {
      appearance.value = readAppearance(pathname);
    };
    addEventListener('storage', follow);
    return () => removeEventListener('storage', follow);
  }, [pathname]);
  const choose = (setting: AppearanceSetting, choice: string): void => {
    const chosen = { ...appearance.value, [setting]: choice };
    appearance.value = chosen;
    applyAppearance(document.documentElement, chosen);
    isKept.value = keepAppearance(pathname, chosen);
  };
  return (
    <>
      <p class={isKept.value ? 'quiet' : 'settings-note'} role="status">
        {isKept.value ? settingsWords.appearanceIsKept : settingsWords.appearanceIsNotKept}
      </p>
      {(Object.keys(appearanceChoices) as AppearanceSetting[]).map((setting) => (
        <Choice
          key={setting}
          setting={setting}
          chosen={appearance.value[setting]}
          onChoose={(choice) => choose(setting, choice)}
        />
      ))}
    </>
  );
}

interface ChoiceProps {
  readonly setting: AppearanceSetting;
  readonly chosen: string;
  readonly onChoose: (choice: string) => void;
}

function Choice({ setting, chosen, onChoose }: ChoiceProps) {
  const { label, choices } = settingsWords.appearance[setting];
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      {Object.entries(choices).map(([choice, meaning]) => (
        <label key={choice} class="check">
          <input
            type="radio"
            name={setting}
            value={choice}
            checked={choice === chosen}
            onChange={() => onChoose(choice)}
          />
          {meaning}
        </label>
      ))}
    </fieldset>
  );
}
