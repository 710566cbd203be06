import { Browser, type CompanionSite } from '../companion/site.ts'

/** What `cache.harmlessWrites` of the two services names where nothing reports changes. */
export const namedInInterface = ['POST /wp-sync/v1/updates', 'POST /wc/store/v1/cart/*']
export const namedInPages = ['heartbeat', 'failed-login', 'POST /?wc-ajax=get_refreshed_fragments']

/** Sends one request. */
type Send = () => Promise<void>

export type Noise = {
  /** Of five seconds: one editor tab, a collaboration session, a cart request a second, a failed login. */
  round(): readonly Send[]
}

/** Requests through a gateway that change nothing that a reader of its interface sees. */
export const noiseThrough = async (
  site: Pick<CompanionSite, 'rest'>,
  gateway: string,
  post: number,
): Promise<Noise> => {
  const browser = new Browser(gateway)
  await browser.login()
  const edit = `/wp-admin/post.php?post=${post}&action=edit`
  await browser.get(edit)
  const nonce = /heartbeatSettings = \{[^}]*"nonce":"(\w+)"/.exec(await browser.get(edit))?.[1]
  if (nonce === undefined) throw new Error('the editor has no nonce for heartbeats')

  const checked = async (name: string, reply: Promise<Response>): Promise<void> => {
    const response = await reply
    const text = await response.text()
    if (!response.ok) throw new Error(`${name}: ${response.status} ${text.slice(0, 200)}`)
  }
  const rest = (path: string, body: unknown): Send => {
    return () => checked(path, site.rest('POST', path, body, gateway))
  }
  const heartbeat: Send = () =>
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
    )
  const login: Send = () =>
    checked('login', new Browser(gateway).post('/wp-login.php', { log: 'admin', pwd: 'wrong' }))
  const fragments: Send = () =>
    checked('fragments', new Browser(gateway).post('/?wc-ajax=get_refreshed_fragments', { time: '1' }))
  const collaborate = rest('/wp-sync/v1/updates', { rooms: [] })
  const cart = rest('/wc/store/v1/cart/add-item', { id: 1, quantity: 1 })
  const preview = rest('/wp/v2/block-renderer/core/archives?context=edit', { attributes: {} })
  const autosave = (text: string) => rest(`/wp/v2/posts/${post}/autosaves`, { content: `<p>${text}</p>` })

  let rounds = 0
  return {
    round: () => {
      rounds += 1
      // A tab sends a heartbeat every ten seconds.
      const editor = rounds % 2 === 0 ? [heartbeat, preview] : [autosave(`Draft ${rounds}`)]
      return [
        ...editor,
        login,
        ...[1, 2, 3, 4, 5].flatMap((second) => [collaborate, second % 2 === 0 ? cart : fragments]),
      ]
    },
  }
}
