import { callerAddresses, type CallerProgram } from './program.ts';

/** Programs for the home, and programs that forward the notifications of others. */
export const homePrograms: readonly CallerProgram[] = [
  {
    name: 'Home Assistant',
    setups: [
      {
        title: 'RESTful notifications',
        address: callerAddresses.group,
        configurationPlace: 'configuration.yaml',
        language: 'yaml',
        configuration: `notify:
  - name: klatch
    platform: rest
    resource: <address>
    method: POST_JSON
    title_param_name: title`,
        fixture: 'generic/home-assistant-rest',
      },
    ],
    remarks: [
      'Automations then call `notify.klatch` with `message` and `title`.',
      'Without `method` it sends GET, which is refused with a 405. It repeats nothing; a refusal stands in its log.',
    ],
  },
  {
    name: 'Sonarr, Radarr and Lidarr',
    setups: [
      {
        address: callerAddresses.group,
        configurationPlace: 'Settings, Connect, Add: Webhook',
        language: 'text',
        configuration: `Webhook URL: <address>
Method: POST`,
        fixture: 'generic/sonarr-grab',
      },
    ],
    remarks: ['It repeats nothing that failed.'],
  },
  {
    name: 'Watchtower and shoutrrr',
    setups: [
      {
        title: 'generic',
        address: callerAddresses.group,
        configurationPlace: 'the environment of the container',
        language: 'sh',
        configuration: 'WATCHTOWER_NOTIFICATION_URL="generic://<host>/v1/webhooks/<token>?template=json"',
        fixture: 'generic/shoutrrr-json',
      },
    ],
    remarks: [
      'Where the server has no TLS, `&disabletls=yes` stands behind it.',
      '`generic+https://<host>/v1/webhooks/<token>` sends the text alone, without its title.',
      '`slack://`, `discord://`, `teams://` and `telegram://` of shoutrrr always call the servers of the vendors.',
      'Its `gotify://` refuses tokens that do not look like those of Gotify.',
    ],
  },
  {
    name: 'Apprise',
    setups: [
      {
        title: 'jsons:// (recommended)',
        address: callerAddresses.group,
        configurationPlace: 'a shell, or its configuration',
        language: 'sh',
        configuration:
          "apprise -n warning -t 'Backup of db1' -b '3 files were skipped' 'jsons://<host>/v1/webhooks/<token>'",
        fixture: 'apprise/warning',
      },
      {
        title: 'mmosts://',
        address: callerAddresses.mattermost,
        configurationPlace: 'a shell, or its configuration',
        language: 'sh',
        configuration: "apprise -t 'Backup of db1' -b '3 files were skipped' 'mmosts://<host>/<token>'",
        fixture: 'slack/senders/apprise-mattermost',
      },
    ],
    remarks: [
      'Where the server has no TLS, these are `json://` and `mmost://`.',
      '`-n warning` and `-n failure` are shown as 🟠 and 🔴 with `jsons://` alone.',
      'Its `slack://`, `discord://`, `tgram://` and `msteams://` always call the servers of the vendors.',
      'It repeats nothing that failed; its exit status tells.',
    ],
  },
  {
    name: 'ntfy clients',
    setups: [
      {
        title: 'Publishing as JSON',
        address: callerAddresses.group,
        configurationPlace: 'a shell; other programs take the address as the URL of the server, with any topic',
        language: 'sh',
        configuration: `curl <address> -d '{
  "topic": "any",
  "title": "Disk of db-1",
  "message": "The disk is 92 % full.",
  "priority": 4,
  "tags": ["warning"],
  "click": "https://db1.example/disks"
}'`,
        fixture: 'ntfy/publishing-as-json',
      },
      {
        title: 'Server and topic, such as in borgmatic',
        address: callerAddresses.ntfy,
        configurationPlace: 'the configuration of borgmatic',
        language: 'yaml',
        configuration: `ntfy:
  server: <server>/v1/webhooks
  topic: <token>`,
        fixture: 'ntfy/borgmatic',
      },
    ],
    remarks: [
      'The client of ntfy takes the address in place of a topic: `ntfy publish --title=Backup <address> "db1 is done"`.',
      'Title, priority, tags, click, icon, actions and attach are read from headers and the query too.',
      'Actions other than `view` are left out, and so are `delay`, `email` and `call`.',
      'Programs that publish JSON to the root of a server, such as `ntfys://<host>/<token>` of Apprise, take the server and the token as the topic.',
    ],
  },
  {
    name: 'Gotify clients',
    setups: [
      {
        address: callerAddresses.gotify,
        configurationPlace: 'a shell; programs ask for the URL of the server and the token of an application',
        language: 'sh',
        configuration: `curl "<server>/message?token=<token>" -F title=Backup -F "message=Backup of db1 failed" -F priority=9`,
        fixture: 'gotify/form',
      },
    ],
    remarks: [
      'The token may stand in the header `X-Gotify-Key` or as a bearer token instead, where no log shows it.',
      'A priority of 8 or more is shown as 🟠.',
      'A program that has one field for a URL takes `<address>/message`.',
    ],
  },
];
