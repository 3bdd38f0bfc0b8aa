/** The appearance settings of this browser with their choices; the first choice is the default. */
export const appearanceChoices = {
  theme: ['system', 'light', 'dark'],
  density: ['comfortable', 'compact'],
  motion: ['system', 'reduced'],
} as const;
type Choices = typeof appearanceChoices;
export type AppearanceSetting = keyof Choices;
type Appearance = { readonly [Setting in AppearanceSetting]: Choices[Setting][number] };

type DataAttributes = Record<string, string | undefined>;

const SETTINGS = Object.keys(appearanceChoices) as AppearanceSetting[];
/** The page ignores stored settings of more characters than this: the JSON text that it stores itself is shorter. */
const MAX_STORED_CHARACTERS = 200;

/**
 * Parses stored settings from JSON. A setting without a valid choice gets its default. `storedJson` null: nothing is
 * stored.
 */
export function parseAppearance(storedJson: string | null): Appearance {
  const values = parseObject(storedJson);
  const chosen = SETTINGS.map((setting) => {
    const choices: readonly string[] = appearanceChoices[setting];
    return [setting, choices.find((each) => each === values[setting]) ?? choices[0]];
  });
  return Object.fromEntries(chosen) as Appearance;
}

function parseObject(storedJson: string | null): Readonly<Record<string, unknown>> {
  if (storedJson === null || storedJson.length > MAX_STORED_CHARACTERS) return {};
  try {
    const values: unknown = JSON.parse(storedJson);
    return typeof values === 'object' && values !== null ? (values as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Reads the stored settings. `basePathname` distinguishes several servers of one origin. */
export function readAppearance(basePathname: string): Appearance {
  try {
    return parseAppearance(localStorage.getItem(storageKeyOf(basePathname)));
  } catch {
    // The browser does not let this page use its storage: every setting gets its default.
    return parseAppearance(null);
  }
}

/** Stores the settings. False: the browser does not let this page use its storage, or the storage is full. */
export function storeAppearance(basePathname: string, appearance: Appearance): boolean {
  try {
    localStorage.setItem(storageKeyOf(basePathname), JSON.stringify(appearance));
    return true;
  } catch {
    return false;
  }
}

/** Sets the attributes of the page's root element, for which `web/styles/appearance.css` has rules. */
export function applyAppearance(root: { readonly dataset: DataAttributes }, appearance: Appearance): void {
  for (const setting of SETTINGS) {
    const value = appearance[setting];
    if (value === appearanceChoices[setting][0]) delete root.dataset[setting];
    else root.dataset[setting] = value;
  }
}

function storageKeyOf(basePathname: string): string {
  return `klatch${basePathname}:appearance`;
}
