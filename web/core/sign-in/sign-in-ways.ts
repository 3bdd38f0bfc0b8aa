import { boolean, objectWithAtLeast, string, type Decoder } from '../../../client/core/decode.ts';

const decodeAbout = objectWithAtLeast({
  registration: string,
  sign_in: objectWithAtLeast({ email: boolean, phone: boolean }),
});

/** How people sign in and sign up at this server. */
export interface SignInWays {
  readonly email: boolean;
  readonly phone: boolean;
  /** Who may create an account: everybody, people with an invitation, or only the administrator. */
  readonly registration: 'open' | 'invite' | 'closed';
}

interface AboutApi {
  get<Answer>(path: string, decode: Decoder<Answer>): Promise<Answer>;
}

/** Asks the server how people sign in. Rejects with ServerError and ConnectionError. */
export async function readSignInWays(api: AboutApi): Promise<SignInWays> {
  const { registration, sign_in: offered } = await api.get('v1/about', decodeAbout);
  const { email, phone } = offered;
  return { email, phone, registration: registrationOf(registration) };
}

/** Whether a person with an invitation can create an account without the administrator. */
export function canSignUp({ registration }: SignInWays): boolean {
  return registration !== 'closed';
}

/** Whether the server sends codes, by which people prove an address. */
export function sendsCodes({ email, phone }: SignInWays): boolean {
  return email || phone;
}

/** Treats a value that only newer servers send as `closed`. */
function registrationOf(text: string): SignInWays['registration'] {
  return text === 'open' || text === 'invite' ? text : 'closed';
}
