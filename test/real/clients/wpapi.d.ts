/** The part of the client wpapi 1.2.2 (which has no types) that the suite uses. */
declare module 'wpapi' {
  type Item = { id: number } & Record<string, unknown>
  type Paging = { total: number; totalPages: number; next?: WPRequest; prev?: WPRequest }
  type Collection = Item[] & { _paging: Paging }

  interface WPRequest extends PromiseLike<unknown> {
    param(name: string, value: unknown): this
    id(id: number): this
    perPage(count: number): this
    page(number: number): this
    search(text: string): this
    include(ids: number[]): this
    categories(id: number): this
    status(status: string): this
    context(context: string): this
    embed(): this
    revisions(): this
    file(content: Buffer | string, name: string): this
    get(): Promise<unknown>
    create(fields: Record<string, unknown>): Promise<Item>
    update(fields: Record<string, unknown>): Promise<Item>
    delete(fields?: Record<string, unknown>): Promise<Item>
    headers(): Promise<Record<string, string>>
  }
  type Handlers = Record<string, () => WPRequest>
  class WPAPI {
    static discover(address: string): Promise<WPAPI>
    constructor(options: { endpoint: string; username?: string; password?: string; routes?: unknown })
    namespace(name: string): Handlers
    root(path: string): WPRequest
  }
  export = WPAPI
}
