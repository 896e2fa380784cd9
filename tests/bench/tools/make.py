"""Writes tools.json and queries.json: 40 servers of 20 tools, and 200 wishes that one of them fulfils, in two wordings.

The definitions follow the patterns of published servers (verb_noun names, one or two sentences, two to six
parameters). Of each wish there is a `near` wording, which calls the thing by its name, and a `far` one, which uses
another word for it. Both use other verbs than the tools where people do, and half of them name the product.
Run it after a change of the tables and commit what it writes.
"""

import json
import pathlib

# server: what it is for; five things, each as "name|plural|what people call it|what it is"
SERVERS = {
    "github": ("GitHub", "issue|issues|ticket|issue of a repository; pull_request|pull requests|PR|pull request with its review state; branch|branches|line of work|branch of a repository; release|releases|published version|release with notes and assets; workflow_run|workflow runs|CI build|run of a GitHub Actions workflow"),
    "gitlab": ("GitLab", "merge_request|merge requests|MR|merge request of a project; pipeline|pipelines|CI pipeline|pipeline with its jobs; project|projects|repo|project with its settings; runner|runners|build agent|runner that executes jobs; snippet|snippets|code snippet|snippet of code"),
    "filesystem": ("the file system", "file|files|document on disk|text file below an allowed folder; directory|directories|folder|directory below an allowed folder; symlink|symlinks|shortcut|symbolic link; permission|permissions|access mode|permission bits of a path; backup|backups|safety copy|copy of a file kept aside"),
    "postgres": ("PostgreSQL", "table|tables|relation|table of a schema; index|indexes|database index|index of a table; query|queries|SQL statement|saved read-only query; role|roles|database user|role with its grants; view|views|virtual table|view and its definition"),
    "sqlite": ("SQLite", "row|rows|record|row of a table; column|columns|attribute|column of a table; attachment|attachments|attached database|attached database file; trigger|triggers|automatic statement|trigger of a table; pragma|pragmas|engine setting|pragma of the connection"),
    "redis": ("Redis", "key|keys|cached entry|key with its value and expiry; stream|streams|event log|stream and its consumer groups; channel|channels|pub/sub topic|channel for messages; hash_field|hash fields|member of a hash|field of a hash; slow_log_entry|slow log entries|slow command|entry of the slow log"),
    "slack": ("Slack", "message|messages|chat post|message in a channel; channel|channels|room|public or private channel; reaction|reactions|emoji on a post|reaction to a message; reminder|reminders|nudge|reminder for a member; user_group|user groups|team handle|group of members"),
    "discord": ("Discord", "server_member|server members|person in the guild|member of a guild; voice_room|voice rooms|call room|voice channel; thread|threads|side conversation|thread below a message; webhook|webhooks|incoming hook|webhook of a channel; sticker|stickers|custom picture|sticker of a guild"),
    "gmail": ("Gmail", "email|emails|mail|email with its headers and body; draft|drafts|unsent mail|draft of an email; label|labels|mail tag|label for conversations; filter|filters|mail rule|filter for incoming mail; attachment|attachments|enclosed file|file attached to an email"),
    "calendar": ("Google Calendar", "event|events|meeting|event with attendees and times; calendar|calendars|schedule|calendar of the account; attendee|attendees|guest|attendee of an event; free_slot|free slots|open time|time in which everybody is free; room_booking|room bookings|meeting room|booking of a room"),
    "notion": ("Notion", "page|pages|wiki page|page with its blocks; database|databases|structured table|database with its properties; block|blocks|paragraph|block inside a page; comment|comments|remark|comment on a page; template|templates|page blueprint|template for pages"),
    "confluence": ("Confluence", "space|spaces|documentation area|space of the wiki; article|articles|knowledge base entry|article of a space; blog_post|blog posts|news item|blog post of a space; page_version|page versions|earlier revision|version of a page; whiteboard|whiteboards|drawing board|whiteboard of a space"),
    "jira": ("Jira", "sprint|sprints|iteration|sprint of a board; epic|epics|big story|epic with its child issues; board|boards|kanban view|board of a project; worklog|worklogs|time entry|work logged on an issue; component|components|product part|component of a project"),
    "linear": ("Linear", "task|tasks|work item|task of a team; cycle|cycles|planning period|cycle of a team; roadmap|roadmaps|long-term plan|roadmap with its projects; triage_item|triage items|incoming request|item waiting for triage; milestone|milestones|target date|milestone of a project"),
    "trello": ("Trello", "card|cards|sticky note|card of a list; list|lists|column of cards|list of a board; checklist|checklists|to-do list|checklist of a card; board_member|board members|collaborator|member of a board; power_up|power-ups|board plug-in|power-up of a board"),
    "asana": ("Asana", "subtask|subtasks|smaller job|subtask of a task; portfolio|portfolios|group of projects|portfolio with its status; goal|goals|objective|goal and its progress; custom_field|custom fields|extra attribute|custom field of a project; status_update|status updates|progress report|status update of a project"),
    "stripe": ("Stripe", "payment|payments|charge|payment with its state; customer|customers|buyer|customer record; invoice|invoices|bill|invoice with its lines; subscription|subscriptions|recurring plan|subscription of a customer; refund|refunds|money back|refund of a payment"),
    "paypal": ("PayPal", "order|orders|checkout|order of a merchant; payout|payouts|transfer to a seller|payout batch; dispute|disputes|chargeback|dispute about a transaction; tracking_number|tracking numbers|parcel code|tracking number of a shipment; billing_agreement|billing agreements|standing authorization|billing agreement of a payer"),
    "shopify": ("Shopify", "product|products|article for sale|product with its variants; inventory_level|inventory levels|stock count|inventory of a location; discount|discounts|coupon|discount code; fulfillment|fulfillments|shipping job|fulfillment of an order; collection|collections|product group|collection of products"),
    "hubspot": ("HubSpot", "contact|contacts|lead|contact with its properties; company|companies|account|company record; deal|deals|sales opportunity|deal of a pipeline; campaign|campaigns|marketing action|campaign and its numbers; form_submission|form submissions|filled-in form|submission of a form"),
    "salesforce": ("Salesforce", "opportunity|opportunities|potential sale|opportunity record; case|cases|support request|case of an account; report|reports|analytics sheet|report and its rows; flow|flows|automation|flow and its versions; territory|territories|sales region|territory of the sales model"),
    "zendesk": ("Zendesk", "support_ticket|support tickets|customer complaint|ticket with its conversation; macro|macros|canned reply|macro for agents; organization|organizations|client company|organization of end users; satisfaction_rating|satisfaction ratings|customer feedback|rating of a ticket; help_article|help articles|FAQ entry|article of the help center"),
    "aws": ("AWS", "bucket|buckets|object storage|S3 bucket; instance|instances|virtual machine|EC2 instance; lambda_function|Lambda functions|serverless code|Lambda function and its configuration; log_group|log groups|CloudWatch logs|log group; secret|secrets|stored credential|secret of the secrets manager"),
    "gcp": ("Google Cloud", "compute_vm|compute VMs|cloud machine|virtual machine of a zone; storage_object|storage objects|blob|object of a bucket; service_account|service accounts|robot identity|service account; billing_budget|billing budgets|spending cap|budget of a billing account; pubsub_topic|Pub/Sub topics|message queue|topic for messages"),
    "azure": ("Azure", "resource_group|resource groups|bundle of resources|resource group; web_app|web apps|hosted site|web app of an app service; key_vault|key vaults|safe for keys|key vault; container_registry|container registries|image store|container registry; alert_rule|alert rules|monitoring alarm|alert rule of a resource"),
    "kubernetes": ("Kubernetes", "pod|pods|running container|pod of a namespace; deployment|deployments|rollout|deployment and its replicas; config_map|config maps|cluster settings|config map of a namespace; node|nodes|cluster machine|node and its capacity; ingress|ingresses|route from outside|ingress and its rules"),
    "docker": ("Docker", "container|containers|isolated process|container with its state; image|images|packaged app|image and its layers; volume|volumes|persistent storage|volume for data; network|networks|virtual LAN|network of containers; compose_stack|compose stacks|group of services|compose project"),
    "terraform": ("Terraform", "workspace|workspaces|environment|workspace and its variables; plan|plans|preview of changes|plan of a run; state_version|state versions|recorded infrastructure|version of a state; module|modules|reusable definition|module of the registry; policy_set|policy sets|guard rails|policy set of an organization"),
    "sentry": ("Sentry", "error_group|error groups|crash|group of equal errors; alert|alerts|notification rule|alert of a project; session_replay|session replays|recording of a visit|replay of a user session; release_health|release health records|crash-free rate|health of a release; source_map|source maps|symbol file|source map of a release"),
    "grafana": ("Grafana", "dashboard|dashboards|metrics board|dashboard with its panels; data_source|data sources|metrics backend|data source; annotation|annotations|mark on a graph|annotation of a time range; silence|silences|muted alarm|silence of alerts; contact_point|contact points|alarm receiver|contact point for alerts"),
    "datadog": ("Datadog", "monitor|monitors|watcher|monitor and its state; metric|metrics|time series|metric and its tags; incident|incidents|outage|incident with its timeline; synthetic_test|synthetic tests|uptime probe|synthetic test; notebook|notebooks|investigation notes|notebook"),
    "pagerduty": ("PagerDuty", "on_call_shift|on-call shifts|duty roster|shift of a schedule; escalation_policy|escalation policies|who is woken next|escalation policy; page|pages|emergency call|page sent to a responder; maintenance_window|maintenance windows|planned downtime|maintenance window; service|services|monitored system|service and its integrations"),
    "figma": ("Figma", "frame|frames|screen design|frame of a file; design_component|design components|UI building block|component of a library; design_comment|design comments|feedback on a design|comment in a file; style|styles|colour or font definition|style of a library; prototype|prototypes|click-through mock|prototype and its flows"),
    "spotify": ("Spotify", "playlist|playlists|mix of songs|playlist with its tracks; track|tracks|song|track and its audio features; album|albums|record|album of an artist; podcast_episode|podcast episodes|talk show|episode of a show; playback|playbacks|what plays now|playback of a device"),
    "maps": ("the maps", "place|places|point of interest|place with address and hours; route|routes|way from A to B|route between places; distance_matrix|distance matrices|travel times|matrix of distances; geocode|geocodes|coordinates of an address|geocoded address; elevation|elevations|height above sea|elevation of a point"),
    "weather": ("the weather service", "forecast|forecasts|tomorrow's weather|forecast of a place; weather_alert|weather alerts|storm warning|alert for a region; observation|observations|current temperature|observation of a station; air_quality|air quality readings|pollution level|air quality of a place; tide|tides|sea level times|tide table of a coast"),
    "browser": ("the browser", "tab|tabs|open site|tab of the browser; screenshot|screenshots|picture of the page|screenshot of a tab; cookie|cookies|site memory|cookie of an origin; form_field|form fields|input box|field of a form; download|downloads|fetched file|download of the browser"),
    "search": ("the web search", "web_result|web results|internet hit|result of a web search; news_story|news stories|headline|story of a news site; picture|pictures|photo on the web|picture found on the web; scholar_paper|scholarly papers|scientific publication|paper with its citations; search_alert|search alerts|saved watch|alert for a search"),
    "memory": ("the memory", "entity|entities|known person or thing|entity of the knowledge graph; relation|relations|connection between things|relation of two entities; fact|facts|remembered statement|fact about an entity; conversation|conversations|earlier chat|remembered conversation; preference|preferences|personal taste|preference of the user"),
    "twilio": ("Twilio", "text_message|text messages|SMS|text message; phone_call|phone calls|voice call|phone call and its state; phone_number|phone numbers|line|phone number of the account; recording|recordings|taped call|recording of a call; verification|verifications|one-time code|verification of a number"),
}

# Three sets of verbs, so that not every server looks alike: verb, sentence, what people say instead.
VERBS = [
    [
        ("list", "List {plural} in {product}. Returns {what}, newest first, in pages.", ["show me all {said} entries{where}", "which {plural} are there{where}"]),
        ("get", "Get one {name} of {product} by its identifier: the {what}.", ["open the details of this {said}{where}", "look up a particular {said}{where}"]),
        ("create", "Create a new {name} in {product}. Returns the {what}.", ["make a {said}{where}", "I need a new {said}{where}"]),
        ("delete", "Delete a {name} from {product} for good. This cannot be undone.", ["get rid of a {said}{where}", "remove the old {said}{where}"]),
    ],
    [
        ("search", "Search {plural} in {product} by text and filters. Returns each {what} that fits.", ["find the {said} about the launch{where}", "look for {plural} that mention billing{where}"]),
        ("read", "Read the whole content of a {name} in {product}: the {what}.", ["what does the {said} say{where}", "give me the full {said}{where}"]),
        ("update", "Update fields of a {name} in {product}. Fields that are left out keep their value.", ["change the {said}{where}", "edit that {said}{where}"]),
        ("archive", "Archive a {name} in {product}, so that it no longer shows in lists.", ["put the {said} away{where}", "archive the finished {said}{where}"]),
    ],
]
COMMON = {
    "id": {"type": "string", "description": "Identifier"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "At most so many, default 20"},
    "cursor": {"type": "string", "description": "Where to go on, from the previous page"},
}


def parameters(verb, name, server):
    own = {f"{name}_id": {**COMMON["id"], "description": f"Identifier of the {name.replace('_', ' ')}"}}
    title = {"title": {"type": "string", "description": "Title"}, "body": {"type": "string", "description": "Text in Markdown"}}
    if verb in ("list", "search"):
        query = {"query": {"type": "string", "description": "Words to look for"}} if verb == "search" else {}
        order = {"order": {"type": "string", "enum": ["newest", "oldest", "name"], "description": "Order of the results"}}
        return {**query, **order, "limit": COMMON["limit"], "cursor": COMMON["cursor"]}, list(query)
    if verb in ("create", "update"):
        known = own if verb == "update" else {}
        tags = {"tags": {"type": "array", "items": {"type": "string"}, "description": f"Tags in {server}"}}
        return {**known, **title, **tags}, list(known) or ["title"]
    return {**own, "reason": {"type": "string", "description": "Why, for the log"}} if verb in ("delete", "archive") else own, list(own)


def main():
    here = pathlib.Path(__file__).parent
    servers, queries = {}, []
    for number, (server, (product, things)) in enumerate(SERVERS.items()):
        tools = []
        for index, thing in enumerate(things.split(";")):
            name, plural, said, what = thing.strip().split("|")
            verbs = VERBS[(number + index) % 2]
            words = {"name": name.replace("_", " "), "plural": plural, "said": said, "what": what, "product": product}
            for verb, sentence, _ in verbs:
                properties, required = parameters(verb, name, product)
                noun = plural.lower().replace(" ", "_").replace("-", "_").replace("/", "") if verb in ("list", "search") else name
                schema = {"type": "object", "properties": properties, "required": required}
                if not required:
                    del schema["required"]
                tools.append({"name": f"{verb}_{noun}", "description": sentence.format(**words), "inputSchema": schema})
            verb, _, wishes = verbs[(number + 2 * index) % 4]
            tool = tools[len(tools) - 4 + (number + 2 * index) % 4]["name"]
            where = f" in {product}" if (number + index) % 4 < 2 else ""
            wish = wishes[(number // 2 + index) % 2]
            near = wish.format(where=where, **{**words, "said": words["name"]})
            queries.append({"near": near, "far": wish.format(where=where, **words), "server": server, "tool": tool})
        servers[server] = tools
    assert len(servers) == 40 and all(len({tool["name"] for tool in tools}) == 20 for tools in servers.values())
    lines = ",\n".join(f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(tool) for tool in tools) + "\n]" for name, tools in servers.items())
    (here / "tools.json").write_text("{\n" + lines + "\n}\n")
    (here / "queries.json").write_text("[\n" + ",\n".join(json.dumps(query) for query in queries) + "\n]\n")


main()
