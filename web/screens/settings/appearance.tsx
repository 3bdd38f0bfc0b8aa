import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import {
  appearanceChoices,
  applyAppearance,
  storeAppearance,
  readAppearance,
  type AppearanceSetting,
} from '../../core/appearance.ts';
import { settingsWords } from '../../words/settings-words.ts';
import type { SettingsPartProps } from './part-props.ts';

/** The settings for the look of the page in this browser. */
export function AppearanceSettings({ state }: SettingsPartProps) {
  const { pathname } = state.place.base;
  const appearance = useSignal(readAppearance(pathname));
  const isAppearanceKept = useSignal(true);
  useEffect(() => {
    const onStorageChange = (): void => {
      appearance.value = readAppearance(pathname);
    };
    addEventListener('storage', onStorageChange);
    return () => removeEventListener('storage', onStorageChange);
  }, [pathname]);
  const choose = (setting: AppearanceSetting, choice: string): void => {
    const chosen = { ...appearance.value, [setting]: choice };
    appearance.value = chosen;
    applyAppearance(document.documentElement, chosen);
    isAppearanceKept.value = storeAppearance(pathname, chosen);
  };
  return (
    <>
      <p class={isAppearanceKept.value ? 'quiet' : 'settings-note'} role="status">
        {isAppearanceKept.value ? settingsWords.appearanceIsKept : settingsWords.appearanceIsNotKept}
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
