import { confirmPushes } from '../companion/keep.ts'
import type { Random } from '../promise-fuzz/random.ts'
import { basic } from '../site-under-test.ts'
import { randomWrites } from '../sites/random-writes.ts'
import { type GraphqlWorld, mutate } from './world.ts'

/** Sends one write; its number makes each a change. */
type Door = (random: Random, nth: number) => Promise<unknown>

const globalId = (kind: string, id: number): string => Buffer.from(`${kind}:${id}`).toString('base64')

const succeeded = async (response: Response): Promise<void> => {
  const text = await response.text()
  if (response.status >= 500) throw new Error(`${response.url}: ${response.status} ${text.slice(0, 300)}`)
}

const mutations = (world: GraphqlWorld): Readonly<Record<string, Door>> => {
  const { ids, site } = world
  const authorization = { Authorization: basic(site.credentials.admin) }
  const send = async (documents: readonly string[], headers: Record<string, string> = authorization) => {
    const text = await mutate(world, documents, headers)
    if (headers === authorization && text.includes('"errors"')) throw new Error(`${documents}: ${text}`)
  }
  const post = (random: Random): string => globalId('post', random.pick(ids.posts.slice(-30)))
  const update = (random: Random, nth: number): string =>
    `mutation { updatePost(input: { id: "${post(random)}", title: "Set ${nth}" }) { post { id } } }`
  const create = (nth: number, status: string): string =>
    `mutation { createPost(input: { title: "Made ${nth}", status: ${status} }) { post { databaseId } } }`
  return {
    'mutation: title': (random, nth) => send([update(random, nth)]),
    'mutation: new post': (_, nth) => send([create(nth, 'PUBLISH')]),
    'mutation: list of two': (random, nth) => send([create(nth, 'DRAFT'), update(random, nth)]),
    'mutation: category': (random, nth) =>
      send([
        `mutation { updateCategory(input: { id: "${globalId('term', random.pick(ids.categories))}", description: "Told ${nth}" }) { category { id } } }`,
      ]),
    'mutation: comment': (random, nth) =>
      send([
        `mutation { createComment(input: { commentOn: ${random.pick(ids.posts)}, content: "Said ${nth}" }) { success } }`,
      ]),
    'mutation without rights': (random, nth) => send([update(random, nth)], {}),
    'mutation that does not exist': () => send(['mutation { nothing }'], {}),
  }
}

/** The interface, also in batches; past the gateway only where the companion reports it. */
const interfaceWrites = (world: GraphqlWorld): Readonly<Record<string, Door>> => {
  const { site, gateway, ids, withCompanion } = world
  const kinds = randomWrites(ids, ['scf'])
  const rest = async (random: Random): Promise<void> => {
    const { method, path, body } = random.pick(kinds)(random)
    const isBypassing = withCompanion && random.chance(0.3)
    await succeeded(await site.rest(method, path, body, isBypassing ? undefined : gateway.publicAddress))
  }
  const batch: Door = async (random) => {
    const requests = [1, 2].map(() => {
      const { path, body } = random.pick(kinds.slice(0, 8))(random)
      return { method: 'PUT', path, body }
    })
    await succeeded(await site.rest('POST', '/batch/v1', { requests }, gateway.publicAddress))
  }
  const publish: Door = async (_, nth) => {
    const through = gateway.publicAddress
    const draft = await site.rest('POST', '/wp/v2/posts', { title: `Draft ${nth}`, status: 'draft' }, through)
    const { id } = (await draft.json()) as { readonly id: number }
    await succeeded(await site.rest('PUT', `/wp/v2/posts/${id}`, { status: 'publish' }, through))
  }
  return { 'REST 1': rest, 'REST 2': rest, 'REST 3': rest, batch, 'draft, then published': publish }
}

const formWrites = ({ browser, ids }: GraphqlWorld): Readonly<Record<string, Door>> => {
  const form = (page: string, having: string, fields: Record<string, string>): Promise<void> =>
    browser.submit(page, having, fields).then(succeeded)
  return {
    'form: tagline': (_, nth) =>
      form('/wp-admin/options-general.php', 'blogdescription', { blogdescription: `Tagline ${nth}` }),
    'form: term': (random, nth) =>
      form(`/wp-admin/term.php?taxonomy=category&tag_ID=${random.pick(ids.categories)}`, 'editedtag', {
        description: `Formed ${nth}`,
      }),
    'form: profile': (_, nth) =>
      form('/wp-admin/profile.php', 'nickname', { description: `About ${nth}`, email: 'admin@example.org' }),
    heartbeat: () => browser.post('/wp-admin/admin-ajax.php', { action: 'heartbeat' }).then(succeeded),
  }
}

const scripts = ({ site, ids }: GraphqlWorld): Readonly<Record<string, Door>> => {
  const run = async (code: string): Promise<void> => {
    const { code: ended, output } = await site.php(code)
    if (ended !== 0) throw new Error(output)
  }
  return {
    'script: title': (random, nth) =>
      run(`wp_update_post( array( 'ID' => ${random.pick(ids.posts)}, 'post_title' => 'Script ${nth}' ) );`),
    'script: option': (_, nth) => run(`update_option( 'blogname', 'Site ${nth}' );`),
    'script: thumbnail': (random) =>
      run(`update_post_meta( ${random.pick(ids.posts)}, '_thumbnail_id', ${random.pick(ids.media)} );`),
    'script: SQL': (random, nth) =>
      run(
        `$GLOBALS['wpdb']->query( "UPDATE wp_posts SET post_excerpt = 'Query ${nth}' WHERE ID = ${random.pick(ids.posts)}" );`,
      ),
  }
}

/** Writes by every door, each with its name. Without the companion nobody tells of a write past the gateway. */
export const doorsOf = (world: GraphqlWorld): Readonly<Record<string, Door>> => ({
  ...mutations(world),
  ...interfaceWrites(world),
  ...formWrites(world),
  ...(world.withCompanion ? scripts(world) : {}),
})

/** Sends a write, and waits until the gateway has been told of one that went past it. */
export const writeBy = async (
  world: GraphqlWorld,
  door: Door,
  random: Random,
  nth: number,
): Promise<void> => {
  const reported = world.site.intake.pushes.length
  await door(random, nth)
  if (world.withCompanion) await confirmPushes(world.gateway, world.site.intake.pushes.slice(reported))
}
