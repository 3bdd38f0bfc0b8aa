import { programs } from './programs.ts';
import { addresses, type CallerAddress } from './programs/program.ts';

/** An address of a group, as it is pasted into programs. It holds the group's token. */
interface GroupAddress {
  /** The kind of program that the address is for: "Slack", "Gotify". */
  readonly name: string;
  /** The values to paste, with the names that programs have for them. */
  readonly values: readonly { readonly name: string; readonly value: string }[];
  /** Programs that are set up with this address. Programs for which this address is the recommended one come first. */
  readonly programs: readonly string[];
}

interface AddressedGroup {
  /** The address at which the server is reached, without a slash at its end. */
  readonly baseUri: string;
  readonly token: string;
  /** Whether the server answers at the paths of other products beside `/v1/webhooks`. */
  readonly hasCallerPaths: boolean;
}

/** All ways to reach a group, one for each kind of program. */
export function groupAddresses({ baseUri, token, hasCallerPaths }: AddressedGroup): GroupAddress[] {
  const filled = (template: string): string =>
    template
      .replace('<address>', '<server>/v1/webhooks/<token>')
      .replace('<server>', () => baseUri)
      .replace('<token>', () => token);
  const all: readonly CallerAddress[] = Object.values(addresses);
  return all
    .filter(({ url }) => hasCallerPaths || url.startsWith('<address>'))
    .map((address) => ({
      name: address.name,
      values: Object.entries(address.values).map(([name, value]) => ({ name, value: filled(value) })),
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
