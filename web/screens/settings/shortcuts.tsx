import { settingsWords } from '../../words/settings-words.ts';

export function Shortcuts() {
  return (
    <table class="shortcuts">
      <thead class="unseen">
        <tr>
          <th scope="col">{settingsWords.keys}</th>
          <th scope="col">{settingsWords.whatTheyDo}</th>
        </tr>
      </thead>
      <tbody>
        {settingsWords.shortcuts.map(([keys, meaning]) => (
          <tr key={keys.join('+')}>
            <td>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </td>
            <td>{meaning}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
