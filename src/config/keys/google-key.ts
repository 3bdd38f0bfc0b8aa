/** How messages describe a service account's key. */
export const SERVICE_ACCOUNT_DESCRIPTION =
  'a service account of the project (Firebase: project settings, service accounts, new private key)';
/**
 * A server key of Google's legacy API, in either of its two forms. People mistake it for the key of a service account.
 */
const LEGACY_SERVER_KEY = /^(?:AIza|AAAA[\w-]*:APA91)/;

/** Says why a text is neither the path nor the JSON of a service account's key; null if it may be one. */
export function googleKeyProblem(text: string): string | null {
  if (LEGACY_SERVER_KEY.test(text.trim())) {
    return `it is a server key of the legacy API, which Google switched off in 2024; what is needed is ${SERVICE_ACCOUNT_DESCRIPTION}`;
  }
  if (text.includes('-----BEGIN')) return isJson(text) ? null : 'it is a private key alone; the whole JSON is needed';
  return null;
}

/** True if the setting is JSON itself, and not the path of a file with JSON. */
export function isJson(key: string): boolean {
  return key.trimStart().startsWith('{');
}
