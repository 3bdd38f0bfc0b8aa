/** The key of a service account, as messages describe it. */
export const SERVICE_ACCOUNT_DESCRIPTION =
  'a service account of the project (Firebase: project settings, service accounts, new private key)';
/** Server keys of Google's legacy API, in both of their forms. People mistake them for the key of a service account. */
const LEGACY_SERVER_KEY = /^(?:AIza|AAAA[\w-]*:APA91)/;

/** Why a text is neither a path nor the JSON of a service account; null where it may be one. */
export function googleKeyProblem(text: string): string | null {
  if (LEGACY_SERVER_KEY.test(text.trim())) {
    return `it is a server key of the legacy API, which Google switched off in 2024; what is needed is ${SERVICE_ACCOUNT_DESCRIPTION}`;
  }
  if (text.includes('-----BEGIN')) return isJson(text) ? null : 'it is a private key alone; the whole JSON is needed';
  return null;
}

/** Whether a key is JSON itself, and not the path of a file with it. */
export function isJson(key: string): boolean {
  return key.trimStart().startsWith('{');
}
