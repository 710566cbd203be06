# Varnish as applications with tags use it: the application sends BAN with the changed groups before it answers a write.
# ${BACKEND_HOST}, ${BACKEND_PORT}
vcl 4.1;

backend default { .host = "${BACKEND_HOST}"; .port = "${BACKEND_PORT}"; }
acl application { "localhost"; "127.0.0.1"; }

sub vcl_recv {
  if (req.method == "BAN") {
    if (!client.ip ~ application) {
      return (synth(405));
    }
    # As item-1|list-a; the quotes of Cache-Groups are other characters than those of a name.
    ban("obj.http.Cache-Groups ~ [^0-9a-z-](" + req.http.Groups + ")[^0-9a-z-]");
    return (synth(200));
  }
}
