import { programs } from './programs.ts';
import { callerAddresses, type CallerAddress } from './programs/program.ts';

/**
 * An address of a group for one kind of program, with the values to paste there. It contains the group's integration
 * token.
 */
interface GroupAddress {
  /** The kind of program that the address is for, such as "Slack" or "Gotify". */
  readonly name: string;
  /** The values to paste into the program, with the program's names for them. */
  readonly values: readonly { readonly name: string; readonly value: string }[];
  /** The names of programs that can use this address. Those for which it is the recommended address come first. */
  readonly programs: readonly string[];
}

interface AddressedGroup {
  /** The URL at which the server is reached, without a slash at its end. */
  readonly baseUri: string;
  readonly token: string;
  /** True if the server also answers at the paths of other products, not only below `/v1/webhooks`. */
  readonly hasCallerPaths: boolean;
}

/** All addresses of a group, one for each kind of program. */
export function groupAddresses({ baseUri, token, hasCallerPaths }: AddressedGroup): GroupAddress[] {
  const filled = (template: string): string =>
    template
      .replace('<address>', '<server>/v1/webhooks/<token>')
      .replace('<server>', () => baseUri)
      .replace('<token>', () => token);
  const all: readonly CallerAddress[] = Object.values(callerAddresses);
  return all
    .filter(({ url }) => hasCallerPaths || url.startsWith('<address>'))
    .map((address) => ({
      name: address.name,
      values: Object.entries(address.valuesToPaste).map(([name, value]) => ({ name, value: filled(value) })),
      programs: programNamesByAddress.get(address) ?? [],
    }));
}

const programNamesByAddress = collectProgramNames();

function collectProgramNames(): ReadonlyMap<CallerAddress, readonly string[]> {
  const setups = programs.flatMap(({ name, setups: all }) =>
    all.map(({ address }, index) => ({ name, address, index })),
  );
  const recommendedFirst = [...setups.filter(({ index }) => index === 0), ...setups.filter(({ index }) => index > 0)];
  const grouped = Map.groupBy(recommendedFirst, ({ address }) => address);
  return new Map([...grouped].map(([address, users]) => [address, [...new Set(users.map(({ name }) => name))]]));
}
