// Runs a work of crates/lab/src/bench.rs on csg-htsim and prints what it was and what it cost as a line of JSON:
//
//     works WORK [SECONDS [apart]]
//
// Networks are made of htsim's Queue (drop-tail) and Pipe. Its FatTreeTopology has other queues, which drop at random before they are
// full or hold 1,000 packets, and makes every path of a pair where a few are used.
//
// Work bcube is of lab bcube-traffic. With `apart`, acknowledgements skip the network, as in htsim's own programs.

#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "config.h"
#include "eventlist.h"
#include "mtcp.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "route.h"
#include "tcp.h"

namespace {

uint64_t packet_hops = 0;

// A packet in a pipe has left the queue of its link, which is when Polypath counts it. An increment and a jump a hop.
class CountingPipe final : public Pipe {
public:
    using Pipe::Pipe;

    void receivePacket(Packet &packet) override {
        ++packet_hops;
        Pipe::receivePacket(packet);
    }
};

struct Channel {
    uint64_t mbps;
    double delay_us;
    int packets;
};

class Line {
public:
    Line(const Channel &channel, EventList &events)
        : queue(speedFromMbps(channel.mbps), memFromPkt(channel.packets), events, nullptr),
          pipe(timeFromUs(channel.delay_us), events) {}

    void append_to(Route &route) {
        route.push_back(&queue);
        route.push_back(&pipe);
    }

private:
    Queue queue;
    CountingPipe pipe;
};

struct Link {
    Link(const Channel &channel, EventList &events) : up(channel, events), down(channel, events) {}

    Line up, down;
};

using Links = std::vector<std::unique_ptr<Link>>;

Links links(size_t count, const Channel &channel, EventList &events) {
    Links made;
    made.reserve(count);
    for (size_t index = 0; index < count; ++index)
        made.push_back(std::make_unique<Link>(channel, events));
    return made;
}

// The lines that data goes by, and those of acknowledgements, which go back the same way.
class Path {
public:
    Path &up(Link &link) { return by(link.up, link.down); }
    Path &down(Link &link) { return by(link.down, link.up); }

    Route *forth(PacketSink &end) const { return route(there.begin(), there.end(), end); }
    Route *back(PacketSink &end) const { return route(home.rbegin(), home.rend(), end); }

private:
    Path &by(Line &forth, Line &back) {
        there.push_back(&forth);
        home.push_back(&back);
        return *this;
    }

    template <typename Iterator> static Route *route(Iterator line, Iterator last, PacketSink &end) {
        auto *made = new Route(int(2 * (last - line) + 1));
        for (; line != last; ++line)
            (*line)->append_to(*made);
        made->push_back(&end);
        return made;
    }

    std::vector<Line *> there, home;
};

// The objects of a run live as long as the process, as in htsim's own programs.
class Run {
public:
    explicit Run(double seconds) : events(EventList::getTheEventList()), random(1) {
        EventList::setEndtime(timeFromSec(seconds));
        srand(1);
        timers = new TcpRtxTimerScanner(timeFromMs(10), events);
    }

    void tcp(const Path &path) {
        subflow(path, nullptr);
        ++pairs;
    }

    // COUPLED_INC is LIA: alpha of RFC 6356, increase capped by that of TCP.
    void mptcp(const std::vector<Path> &paths) {
        auto *connection = new MultipathTcpSrc(COUPLED_INC, events, nullptr);
        for (const Path &path : paths)
            subflow(path, connection);
        ++pairs;
    }

    uint64_t below(uint64_t bound) { return random() % bound; }

    uint64_t delivered_bytes() const {
        uint64_t total = 0;
        for (const TcpSink *sink : sinks)
            total += sink->_cumulative_ack;
        return total;
    }

    EventList &events;
    size_t pairs = 0;
    bool acknowledgements_skip_the_network = false;
    std::vector<TcpSink *> sinks;

private:
    void subflow(const Path &path, MultipathTcpSrc *connection) {
        auto *source = new TcpSrc(nullptr, nullptr, events);
        auto *sink = new TcpSink();
        timers->registerTcp(*source);
        if (connection != nullptr)
            connection->addSubflow(source);
        const Path &home = acknowledgements_skip_the_network ? Path() : path;
        source->connect(*path.forth(*sink), *home.back(*source), *sink, 0);
        sinks.push_back(sink);
    }

    std::mt19937_64 random;
    TcpRtxTimerScanner *timers;
};

// A k-ary fat-tree (Al-Fares et al., SIGCOMM 2008).
class FatTree {
public:
    FatTree(size_t k, EventList &events) : half(k / 2), hosts(k * half * half) {
        const Channel channel{100, 10, 100};
        to_edge = links(hosts, channel, events);
        to_aggregation = links(hosts, channel, events);
        to_core = links(hosts, channel, events);
    }

    // By an aggregation switch of each pod and a core switch above it.
    Path path(size_t from, size_t to, size_t aggregation, size_t core) const {
        const size_t edges[] = {from / half, to / half};
        const size_t pods[] = {edges[0] / half, edges[1] / half};
        Path path;
        path.up(*to_edge[from]);
        if (edges[0] != edges[1])
            path.up(*to_aggregation[edges[0] * half + aggregation]);
        if (pods[0] != pods[1]) {
            path.up(*to_core[(pods[0] * half + aggregation) * half + core]);
            path.down(*to_core[(pods[1] * half + aggregation) * half + core]);
        }
        if (edges[0] != edges[1])
            path.down(*to_aggregation[edges[1] * half + aggregation]);
        path.down(*to_edge[to]);
        return path;
    }

    const size_t half, hosts;

private:
    Links to_edge, to_aggregation, to_core;
};

// A permutation without fixed points: a single cycle (Sattolo's algorithm).
std::vector<size_t> derangement(size_t count, Run &run) {
    std::vector<size_t> order(count);
    for (size_t index = 0; index < count; ++index)
        order[index] = index;
    for (size_t index = count - 1; index > 0; --index)
        std::swap(order[index], order[run.below(index)]);
    return order;
}

void fat_tree(Run &run, size_t k, size_t subflows) {
    const auto &tree = *new FatTree(k, run.events);
    const std::vector<size_t> receivers = derangement(tree.hosts, run);
    for (size_t sender = 0; sender < tree.hosts; ++sender) {
        std::vector<Path> paths;
        for (size_t subflow = 0; subflow < subflows; ++subflow) {
            const size_t aggregation = run.below(tree.half), core = run.below(tree.half);
            paths.push_back(tree.path(sender, receivers[sender], aggregation, core));
        }
        if (subflows > 1)
            run.mptcp(paths);
        else
            run.tcp(paths.front());
    }
}

void two_paths(Run &run) {
    const Channel access{10'000, 1, 10'000};
    const auto &middle = *new Links(links(2, {100, 10'000, 166}, run.events));
    for (size_t connection = 0; connection < 16; ++connection) {
        const auto &client = *new Links(links(2, access, run.events));
        auto *server = new Link(access, run.events);
        std::vector<Path> paths;
        for (size_t index = 0; index < 2; ++index)
            paths.push_back(Path().up(*client[index]).up(*middle[index]).down(*server));
        run.mptcp(paths);
    }
}

void dumbbell(Run &run) {
    const Channel access{1'000, 1'000, 1'000};
    auto *middle = new Link({100, 10'000, 100}, run.events);
    for (size_t connection = 0; connection < 16; ++connection) {
        auto *client = new Link(access, run.events), *server = new Link(access, run.events);
        run.tcp(Path().up(*client).up(*middle).down(*server));
    }
}

// BCube(5, 2) and its ways (Guo et al., SIGCOMM 2009, BuildPathSet): a server has a link for each of its three digits in base 5.
class BCube {
public:
    static constexpr size_t SERVERS = 125;

    explicit BCube(EventList &events) {
        for (Links &level : levels)
            level = links(SERVERS, {100, 10, 100}, events);
    }

    static size_t digit(size_t server, size_t level) { return server / WEIGHTS[level] % 5; }
    static size_t with(size_t server, size_t level, size_t digit) {
        return server + digit * WEIGHTS[level] - BCube::digit(server, level) * WEIGHTS[level];
    }

    // Corrects the digits from that of a level down. Where that one is right already, it goes by another server first.
    Path path(size_t from, size_t to, size_t level, Run &run) const {
        Path path;
        if (digit(from, level) == digit(to, level)) {
            const size_t by = with(from, level, (digit(from, level) + 1 + run.below(4)) % 5);
            hop(path, from, by, level);
            correct(path, by, to, (level + 2) % 3);
        } else {
            correct(path, from, to, level);
        }
        return path;
    }

private:
    void correct(Path &path, size_t at, size_t to, size_t first) const {
        for (size_t step = 0; step < 3; ++step) {
            const size_t level = (first + 3 - step) % 3, next = with(at, level, digit(to, level));
            if (next != at)
                hop(path, at, next, level);
            at = next;
        }
    }

    void hop(Path &path, size_t from, size_t to, size_t level) const {
        path.up(*levels[level][from]).down(*levels[level][to]);
    }

    static constexpr size_t WEIGHTS[] = {1, 5, 25};
    Links levels[3];
};

// Each server sends to the twelve that are one switch away, as in NSDI 2011 (Wischik et al.), section 4.
void to_neighbours(Run &run) {
    const auto &cube = *new BCube(run.events);
    for (size_t from = 0; from < BCube::SERVERS; ++from)
        for (size_t level = 0; level < 3; ++level)
            for (size_t digit = 0; digit < 5; ++digit) {
                const size_t to = BCube::with(from, level, digit);
                if (to != from)
                    run.mptcp({cube.path(from, to, 2, run), cube.path(from, to, 1, run), cube.path(from, to, 0, run)});
            }
    run.pairs = 3 * BCube::SERVERS; // interfaces
}

// Notes what was delivered until a time.
class Mark final : public EventSource {
public:
    Mark(const Run &run, double seconds) : EventSource(run.events, "mark"), run(run) {
        eventlist().sourceIsPending(*this, timeFromSec(seconds));
    }

    void doNextEvent() override { bytes = run.delivered_bytes(); }

    uint64_t bytes = 0;

private:
    const Run &run;
};

struct Work {
    const char *name;
    double seconds;
    void (*set_up)(Run &);
};

const Work WORKS[] = {
    {"W1", 3, [](Run &run) { fat_tree(run, 8, 8); }},
    {"W2", 3, [](Run &run) { fat_tree(run, 8, 1); }},
    {"W3", 30, two_paths},
    {"W4", 0.05, [](Run &run) { fat_tree(run, 16, 8); }},
    {"W5", 0.01, [](Run &run) { fat_tree(run, 32, 8); }},
    {"W6", 30, dumbbell},
    {"bcube", 4, to_neighbours},
};

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval &time) { return double(time.tv_sec) + double(time.tv_usec) / 1e6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// getrusage counts what the process had before exec as well.
double peak_megabytes() {
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line))
        if (line.rfind("VmHWM:", 0) == 0)
            return std::strtod(line.c_str() + 6, nullptr) * 1024 / 1e6;
    return 0;
}

} // namespace

int main(int count, char **arguments) {
    const Work *work = nullptr;
    for (const Work &known : WORKS)
        if (count > 1 && std::string(known.name) == arguments[1])
            work = &known;
    if (work == nullptr) {
        std::fprintf(stderr, "usage: works W1|W2|W3|W4|W5|W6|bcube [SECONDS [apart]]\n");
        return 2;
    }
    const double seconds = count > 2 ? std::strtod(arguments[2], nullptr) : work->seconds;
    std::cout.setstate(std::ios::failbit); // htsim tells of each timeout

    const double began = cpu_seconds();
    Run run(seconds);
    run.acknowledgements_skip_the_network = count > 3 && std::string(arguments[3]) == "apart";
    work->set_up(run);
    Mark mark(run, seconds * 3 / 4);
    const double ready = cpu_seconds();
    while (EventList::doNextEvent()) {
    }
    const double over = cpu_seconds();

    const double capacity = 100e6 * double(run.pairs);
    std::printf("{\"work\": \"%s\", \"simulated_seconds\": %g, \"packet_hops\": %llu, \"share_of_capacity\": %.6f, "
                "\"share_in_last_quarter\": %.6f, "
                "\"subflows\": %zu, \"cpu_seconds\": %.6f, \"set_up_cpu_seconds\": %.6f, \"memory_mb\": %.1f}\n",
                work->name, seconds, static_cast<unsigned long long>(packet_hops),
                double(run.delivered_bytes()) * 8 / seconds / capacity,
                double(run.delivered_bytes() - mark.bytes) * 32 / seconds / capacity, run.sinks.size(), over - ready, ready - began,
                peak_megabytes());
}
