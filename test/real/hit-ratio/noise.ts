import { Browser, type CompanionSite } from '../companion/site.ts'

/** What `cache.harmlessWrites` of the two services names where nothing reports changes. */
export const namedInInterface = ['POST /wp-sync/v1/updates', 'POST /wc/store/v1/cart/*']
export const namedInPages = ['heartbeat', 'failed-login', 'POST /?wc-ajax=get_refreshed_fragments']

/** Sends one request. */
export type Send = () => Promise<void>

const checked = async (name: string, reply: Promise<Response>): Promise<void> => {
  const response = await reply
  const text = await response.text()
  if (!response.ok) throw new Error(`${name}: ${response.status} ${text.slice(0, 200)}`)
}

/** What an editor with a post open and passers-by send, through a gateway: nothing that a reader of its interface sees changes. */
export type QuietRequests = {
  readonly heartbeat: Send
  readonly preview: Send
  readonly autosave: Send
  readonly failedLogin: Send
  readonly fragments: Send
}

export const quietRequests = async (
  { rest }: Pick<CompanionSite, 'rest'>,
  gateway: string,
  post: number,
): Promise<QuietRequests> => {
  const browser = new Browser(gateway)
  await browser.login()
  const edit = `/wp-admin/post.php?post=${post}&action=edit`
  const page = await browser.getPastWelcomes(edit)
  const nonce = /heartbeatSettings = \{[^}]*"nonce":"(\w+)"/.exec(page)?.[1]
  if (nonce === undefined) throw new Error(`the editor has no nonce for heartbeats: ${page.slice(0, 500)}`)
  const send = (path: string, body: unknown): Promise<void> =>
    checked(path, rest('POST', path, body, gateway))
  let drafts = 0
  return {
    heartbeat: () =>
      checked(
        'heartbeat',
        browser.post('/wp-admin/admin-ajax.php', {
          'data[wp-refresh-post-lock][post_id]': String(post),
          'data[wp-refresh-post-lock][lock]': '1:1',
          interval: '10',
          _nonce: nonce,
          action: 'heartbeat',
          screen_id: 'post',
          has_focus: 'true',
        }),
      ),
    preview: () => send('/wp/v2/block-renderer/core/archives?context=edit', { attributes: {} }),
    autosave: () => {
      drafts += 1
      return send(`/wp/v2/posts/${post}/autosaves`, { content: `<p>Draft ${drafts}</p>` })
    },
    failedLogin: () =>
      checked('login', new Browser(gateway).post('/wp-login.php', { log: 'admin', pwd: 'wrong' })),
    fragments: () =>
      checked('fragments', new Browser(gateway).post('/?wc-ajax=get_refreshed_fragments', { time: '1' })),
  }
}

export type Noise = {
  /** Of five seconds: one editor tab, a collaboration session, a cart request a second, a failed login. */
  round(): readonly Send[]
}

/** Requests through a gateway that change nothing that a reader of its interface sees, on a site with the plugin `noise`. */
export const noiseThrough = async (
  site: Pick<CompanionSite, 'rest'>,
  gateway: string,
  post: number,
): Promise<Noise> => {
  const { heartbeat, preview, autosave, failedLogin, fragments } = await quietRequests(site, gateway, post)
  const rest = (path: string, body: unknown): Send => {
    return () => checked(path, site.rest('POST', path, body, gateway))
  }
  const collaborate = rest('/wp-sync/v1/updates', { rooms: [] })
  const cart = rest('/wc/store/v1/cart/add-item', { id: 1, quantity: 1 })

  let rounds = 0
  return {
    round: () => {
      rounds += 1
      // A tab sends a heartbeat every ten seconds.
      const editor = rounds % 2 === 0 ? [heartbeat, preview] : [autosave]
      return [
        ...editor,
        failedLogin,
        ...[1, 2, 3, 4, 5].flatMap((second) => [collaborate, second % 2 === 0 ? cart : fragments]),
      ]
    },
  }
}
