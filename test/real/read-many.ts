/** A read of the interface: path and query below `/wp-json`, as the user with this id. */
type Asked = { readonly path: string; readonly query: string; readonly user: number }

export type OneOfMany = {
  readonly status: number
  readonly total: string | null
  readonly pages: string | null
  readonly body: string
}

/** Many responses of a WordPress with the plugin promise-fuzz, in one request: they cost one start of WordPress. */
export const readMany = async (
  origin: string,
  asked: readonly (Pick<Asked, 'user'> & { readonly route: string })[],
): Promise<readonly OneOfMany[]> => {
  if (asked.length === 0) return []
  const list = asked.map(({ route, user }): Asked => {
    const [path = '', query = ''] = route.split('?')
    return { path, query, user }
  })
  const response = await fetch(`${origin}/?read_many`, {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: JSON.stringify(list),
  })
  return JSON.parse(await response.text()) as readonly OneOfMany[]
}
